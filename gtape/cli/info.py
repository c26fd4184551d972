"""`python -m gtape info`: versions, devices and why they are usable or not, memory."""

from __future__ import annotations

import argparse
import json
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import gtape as tf
from gtape.devices import cache, probe

HELP = "say which versions, devices and memory were found, and why"
_VARIABLE = "GTAPE_DEVICE"
_CUPY = ("cupy", "cupy-cuda12x", "cupy-cuda13x")
_PACKAGES = ("numpy", "keras", *_CUPY, "ml-dtypes", "nvidia-ml-py")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def versions() -> dict[str, str]:
    """gtape, Python, the system, and the installed ones of the packages that matter here."""
    found = {"gtape": tf.__version__, "Python": platform.python_version(),
             "system": f"{platform.system()} {platform.machine()}"}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def conflicts(found: dict[str, str]) -> list[str]:
    """What cannot work together among the versions."""
    # The wheels of CuPy install one and the same folder.
    wheels = [name for name in _CUPY if name in found]
    if len(wheels) < 2:
        return []
    return [f"{' and '.join(wheels)} overwrite each other's files; run: pip uninstall "
            f"{' '.join(wheels)}, then install the one for your CUDA"]


def devices() -> list[dict[str, object]]:
    """Every device that was looked for: its name, whether it is usable, and why."""
    try:
        findings = [tuple(finding) for finding in probe.report()]
    except tf.errors.InvalidArgumentError as error:
        findings = [("CPU:0", True, "NumPy"), (_VARIABLE, False, str(error))]
    return [{"name": name, "usable": usable, "reason": reason} for name, usable, reason in findings]


def chosen() -> str | None:
    """The device of new tensors; None when GTAPE_DEVICE asks for one that cannot be used."""
    try:
        return str(tf.zeros(()).device)
    except tf.errors.InvalidArgumentError:
        return None


def host_memory() -> dict[str, int]:
    """Bytes of main memory, as far as the system tells: 'total', and 'available' on Linux."""
    found = {}
    # Windows has no sysconf, and not every system has this name.
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found["total"] = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    meminfo = Path("/proc/meminfo")
    if meminfo.is_file():
        rows = dict(line.split(":", 1) for line in meminfo.read_text().splitlines() if ":" in line)
        if "MemAvailable" in rows:
            found["available"] = int(rows["MemAvailable"].split()[0]) * 1024
    return found


def memory(found: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Bytes by usable device; of a GPU what `tf.config.experimental.get_memory_info` says."""
    sizes = {"CPU:0": host_memory()}
    for device in found:
        # Asking one that is not usable would raise what `reason` says already.
        if device["usable"] and device["name"].startswith("GPU:"):
            sizes[device["name"]] = dict(tf.config.experimental.get_memory_info(device["name"]))
    return sizes


def kept() -> dict[str, str | None]:
    """The folder of compiled programs and kernels, and why it is not used, if it is not."""
    folder, refusal = cache.state()
    return {"folder": str(folder) if folder else None, "refused": refusal or None}


def collect() -> dict[str, object]:
    """Everything that `info` shows."""
    found, looked_for = versions(), devices()
    return {"versions": found, "conflicts": conflicts(found), "devices": looked_for,
            "chosen": chosen(), _VARIABLE: os.environ.get(_VARIABLE),
            "memory": memory(looked_for), "cache": kept()}


def _choice(found: dict[str, object]) -> str:
    asked = f"{_VARIABLE}={found[_VARIABLE]}"
    if found["chosen"] is None:
        return f"cannot be made: {asked} asks for a device that cannot be used"
    return f"on {found['chosen']}" + (f" ({asked})" if found[_VARIABLE] else "")


def _text(found: dict[str, Any]) -> str:
    lines = [f"{name:<14}{version}" for name, version in found["versions"].items()]
    lines += [f"conflict: {conflict}" for conflict in found["conflicts"]]
    lines.append("")
    for device in found["devices"]:
        state = "usable" if device["usable"] else "not usable"
        lines.append(f"{device['name']:<14}{state}: {device['reason']}")
    lines += [f"{'new tensors':<14}{_choice(found)}", ""]
    for name, sizes in found["memory"].items():
        parts = [f"{kind} {size / 2**30:.2f} GiB" for kind, size in sizes.items()]
        lines.append(f"{name:<14}memory: {', '.join(parts) or 'not known'}")
    folder, refused = found["cache"].values()
    lines += ["", f"{'cache':<14}{folder or 'none'}"]
    if refused:
        lines[-1] += f", not used: {refused}"
    return "\n".join(lines)


def execute(options: argparse.Namespace) -> int:
    found = collect()
    print(json.dumps(found, indent=2) if options.json else _text(found))
    return 0 if found["chosen"] else 1

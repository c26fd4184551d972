"""cuSOLVER by LAPACK: dense factorisations, linear systems, eigenvalues and singular values."""

from __future__ import annotations

from gtape.devices.simulated import cusolver_factors, cusolver_spectra
from gtape.devices.simulated.cusolver_base import library

#: The modules whose functions are the library's.
PARTS = (cusolver_factors, cusolver_spectra)
LIBRARIES = (library,)

"""Hash functions of strings, number for number those of TensorFlow."""

from __future__ import annotations

import pytest

import gtape as tf
from gtape.ops.text.hashes import fingerprints

_BUCKETS = 2**63 - 1
_KEY = [133, -137]

#: Of the first n bytes 3, 10, 17 ... modulo 256: the fast hash, the strong one, the plain one.
_MEASURED = [
    (0, 1936946117179621456, 7917967690429393974, 105434511174508092),
    (1, 4521786392703311244, 2685381043635425772, 7001769250909271135),
    (2, 1655114877597445365, 8841771768519869627, 5403634426442856619),
    (3, 4662423180930907492, 7592334245428499952, 5276484929406308779),
    (4, 8342898540396837779, 3342509546189814627, 5799242685562273649),
    (5, 1540533402979949747, 1442635371667304541, 7255111670912128758),
    (7, 5759834791111993764, 2655066541346976721, 1142397842043859391),
    (8, 907454142650066470, 4298831138043842763, 384654127350334882),
    (9, 7285966030820982784, 4726802418421496314, 8965977459318072057),
    (15, 3216519055487487771, 3782408095931676631, 4784052358771091955),
    (16, 9140634717936656744, 8588855745124268037, 5129953047346710616),
    (17, 5283162056940282152, 2094304683621717467, 7037566801403733717),
    (24, 3530932784303194834, 5280581705463475857, 8045408115061476468),
    (31, 4421592475991032780, 7983863216983159249, 2139119004151307922),
    (32, 2684005117763720425, 7114826658999852213, 1458650421252541103),
    (33, 4778210889463820522, 261691425684088757, 2574933530128875931),
    (47, 4416885023155810015, 1052434322253529963, 3327700094392514165),
    (63, 1604338371932276381, 5818372017337359024, 5271103884795240918),
    (64, 389040666157116578, 3585149428732446781, 3945209722589307479),
    (65, 8638051931306504420, 4335672267651337201, 8278743160437407290),
    (100, 2168416630947060489, 2222342554904730536, 4171434909501331629),
    (127, 5377748835515186047, 1456611660810271036, 2442093141837005767),
    (128, 7379187116787024497, 7983233281498639994, 8132594031198021779),
    (129, 1738507677182238852, 5932391307361038204, 1361456403630484005),
    (192, 4590343427702585127, 7554509583222367828, 5539149426909079346),
    (193, 1880101834108236471, 7561316376882089431, 680498057724370385),
    (256, 7075199560300561826, 3691891864178626424, 712669341504317127),
    (300, 6898649388113571604, 4264142357302647693, 517584126318827841),
]
_STRINGS = [bytes((7 * i + 3) % 256 for i in range(row[0])) for row in _MEASURED]


def test_hashes_of_every_kind_of_length() -> None:
    x = tf.constant(_STRINGS)
    fast = tf.strings.to_hash_bucket_fast(x, _BUCKETS)
    assert fast.dtype is tf.int64
    assert fast.numpy().tolist() == [row[1] for row in _MEASURED]
    assert tf.strings.to_hash_bucket_strong(x, _BUCKETS, _KEY).numpy().tolist() == [
        row[2] for row in _MEASURED]
    assert tf.strings.to_hash_bucket(x, _BUCKETS).numpy().tolist() == [row[3] for row in _MEASURED]


def test_buckets() -> None:
    x = [["a", "b"]]
    assert tf.strings.to_hash_bucket(x, 10).numpy().tolist() == [[8, 0]]
    assert tf.strings.to_hash_bucket_fast(x, 10).numpy().tolist() == [[9, 2]]
    assert tf.strings.to_hash_bucket_strong("a", 10, [1, 2]).numpy() == 6
    assert tf.strings.to_hash_bucket_strong("a", 10, [-1, 2]).numpy() == 0
    assert tf.strings.to_hash_bucket_fast("a", 1).numpy() == 0
    assert tf.strings.to_hash_bucket_fast(tf.zeros([0, 3], tf.string), 5).shape == [0, 3]


@pytest.mark.parametrize("count", [0, -1])
def test_there_is_at_least_one_bucket(count: int) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least 1"):
        tf.strings.to_hash_bucket_fast(["a"], count)


@pytest.mark.parametrize("key", [[1], [1, 2, 3], [1, 2**64]])
def test_a_key_is_two_words(key: list[int]) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="2 elements"):
        tf.strings.to_hash_bucket_strong(["a"], 10, key)


def test_numbers_are_not_hashed() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="as_string"):
        tf.strings.to_hash_bucket_fast([1], 10)


def test_fingerprints_of_strings_of_many_lengths_together_and_alone() -> None:
    assert [int(fingerprints([s])[0]) for s in _STRINGS] == fingerprints(_STRINGS).tolist()
    assert fingerprints([b""])[0] == 0x9AE16A3B2F90404F


@pytest.mark.parametrize("data, wanted", [
    (["a", "b"], [[227, 117, 223, 182, 101, 66, 69, 179], [22, 241, 200, 94, 33, 96, 178, 163]]),
    ([[1, 2], [3, 4]], [[76, 18, 253, 133, 168, 204, 240, 10],
                        [254, 162, 60, 240, 103, 244, 53, 255]]),
    ([["a", "b"], ["c", "d"]], [[122, 64, 59, 169, 136, 60, 55, 83],
                                [52, 252, 224, 38, 64, 226, 155, 60]]),
    ([["a"], ["c"]], [[227, 117, 223, 182, 101, 66, 69, 179],
                      [40, 123, 203, 224, 169, 24, 161, 158]]),
    ([[1.5], [2.5]], [[64, 181, 56, 72, 223, 224, 189, 72],
                      [215, 206, 200, 229, 128, 42, 67, 207]])])
def test_fingerprints_of_rows(data: object, wanted: list[list[int]]) -> None:
    found = tf.fingerprint(data)
    assert found.dtype is tf.uint8 and found.numpy().tolist() == wanted


def test_what_has_no_fingerprint() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least one axis"):
        tf.fingerprint("a")
    with pytest.raises(tf.errors.InvalidArgumentError, match="farmhash64"):
        tf.fingerprint(["a"], method="md5")

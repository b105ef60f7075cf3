import pytest

from engine.sizes import bytes_said


@pytest.mark.parametrize(
    ("n_bytes", "said"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1023.9, "1 KiB"),
        (1536, "1.5 KiB"),
        (36_864, "36 KiB"),
        (1_023 * 1024, "1,023 KiB"),
        (98_362_432, "93.8 MiB"),
        (1001 * 2**20, "1,001 MiB"),
        (80 * 2**30, "80 GiB"),
        (5000 * 2**40, "5,000 TiB"),
    ],
)
def test_bytes_count_in_powers_of_1024(n_bytes: float, said: str) -> None:
    assert bytes_said(n_bytes) == said

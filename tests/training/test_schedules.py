"""Learning-rate schedules: by hand, and against those of PyTorch."""

import pytest

torch = pytest.importorskip("torch", reason="extra torch is not installed")

from sisod.training.module import schedule_factor  # noqa: E402
from sisod.training.recipe_parts import Schedule  # noqa: E402

STEPS, EPOCHS = 4, 5


def factors(schedule: Schedule) -> list[float]:
    factor = schedule_factor(schedule, steps_per_epoch=STEPS, n_epochs=EPOCHS)
    return [factor(step) for step in range(STEPS * EPOCHS)]


def test_by_hand() -> None:
    assert factors(Schedule()) == [1.0] * 20
    # lr (1 - |2 (e + 1) / (E + 1) - 1|) of ICON and LDF: thirds up, one, thirds down
    triangle = [value for value in (1 / 3, 2 / 3, 1, 2 / 3, 1 / 3) for _ in range(STEPS)]
    assert factors(Schedule("triangle")) == pytest.approx(triangle)
    drop = Schedule("drop", drop_epochs=(2, 4), drop_factor=0.1)
    assert factors(drop) == pytest.approx([1.0] * 8 + [0.1] * 8 + [0.01] * 4)
    # EDN's warm-up: 0.01 + 0.99 (it + 1) / n
    assert factors(Schedule(warmup_steps=4))[:5] == pytest.approx([0.2575, 0.505, 0.7525, 1.0, 1.0])
    # poly: (1 - t)^0.9, a quarter of the way
    assert factors(Schedule("poly"))[5] == pytest.approx(0.75**0.9)


@pytest.mark.parametrize("name", ["poly", "cosine"])
def test_against_pytorch(name: str) -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    theirs = (
        torch.optim.lr_scheduler.PolynomialLR(optimizer, STEPS * EPOCHS, power=0.9)
        if name == "poly"
        else torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS * EPOCHS)
    )
    rates = []
    for _ in range(STEPS * EPOCHS):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        theirs.step()
    assert factors(Schedule(name)) == pytest.approx(rates)  # type: ignore[arg-type]

"""An independent implementation of the five published networks, by published tensor names.

Written from the fact sheet alone, with other operations than the modules where there is a choice, to be
an independent witness of them. `Weights` makes a tensor when it is first asked for, so one call of a
function also yields a state dict with every published name and shape.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812  (the name everybody knows it by)
from torch import Tensor


class Weights(dict[str, Tensor]):
    """Tensors by published name; each is drawn at random when it is first used."""

    def __init__(self, seed: int = 0, *, gain: float = 1.0) -> None:
        super().__init__()
        self.random = torch.Generator().manual_seed(seed)
        self.gain = gain

    def normal(self, name: str, *shape: int, std: float = 1.0) -> Tensor:
        """Normal values, for what adds or multiplies either way."""
        if name not in self:
            self[name] = std * torch.randn(*shape, generator=self.random)
        return self[name]

    def uniform(self, name: str, size: int, low: float, high: float) -> Tensor:
        """Values in a range, for what must stay positive."""
        if name not in self:
            self[name] = low + (high - low) * torch.rand(size, generator=self.random)
        return self[name]

    def conv(
        self,
        name: str,
        x: Tensor,
        out: int,
        kernel: int | tuple[int, int],
        *,
        bias: bool,
        stride: int = 1,
        dilation: int = 1,
        padding: int | tuple[int, int] | None = None,
    ) -> Tensor:
        """A convolution that keeps the size unless a stride or a padding says otherwise."""
        rows, columns = (kernel, kernel) if isinstance(kernel, int) else kernel
        if padding is None:
            padding = (dilation * (rows - 1) // 2, dilation * (columns - 1) // 2)
        fan_in = x.shape[1] * rows * columns
        weight = self.normal(
            f"{name}.weight", out, x.shape[1], rows, columns, std=self.gain * fan_in**-0.5
        )
        shift = self.normal(f"{name}.bias", out, std=0.1) if bias else None
        return F.conv2d(x, weight, shift, stride, padding, dilation)

    def norm(self, name: str, x: Tensor, *, frozen: bool = False) -> Tensor:
        """A batch norm in eval mode; EDN's frozen one has no epsilon and no counter."""
        size = x.shape[1]
        scale = self.uniform(f"{name}.weight", size, 0.5, 1.0)
        shift = self.normal(f"{name}.bias", size, std=0.1)
        mean = self.normal(f"{name}.running_mean", size, std=0.1)
        variance = self.uniform(f"{name}.running_var", size, 0.5, 1.5)
        if not frozen:
            self.setdefault(f"{name}.num_batches_tracked", torch.tensor(7))
        scale = scale / (variance + (0.0 if frozen else 1e-5)).sqrt()
        return x * scale[:, None, None] + (shift - mean * scale)[:, None, None]

    def prelu(self, name: str, x: Tensor) -> Tensor:
        """One slope for all channels."""
        slope = self.uniform(f"{name}.weight", 1, 0.1, 0.4)
        return torch.where(x > 0, x, slope * x)


def up(x: Tensor, like: Tensor, *, corners: bool = False) -> Tensor:
    return F.interpolate(x, like.shape[-2:], mode="bilinear", align_corners=corners)


def bottleneck(
    w: Weights,
    name: str,
    x: Tensor,
    planes: int,
    *,
    stride: int = 1,
    dilation: int = 1,
    project: bool = False,
    caffe: bool = False,
    frozen: bool = False,
) -> Tensor:
    first, second = (stride, 1) if caffe else (1, stride)
    y = w.conv(f"{name}.conv1", x, planes, 1, bias=False, stride=first)
    y = w.norm(f"{name}.bn1", y, frozen=frozen).relu()
    y = w.conv(f"{name}.conv2", y, planes, 3, bias=False, stride=second, dilation=dilation)
    y = w.norm(f"{name}.bn2", y, frozen=frozen).relu()
    y = w.norm(f"{name}.bn3", w.conv(f"{name}.conv3", y, 4 * planes, 1, bias=False), frozen=frozen)
    if project:
        x = w.conv(f"{name}.downsample.0", x, 4 * planes, 1, bias=False, stride=stride)
        x = w.norm(f"{name}.downsample.1", x, frozen=frozen)
    return (y + x).relu()


def trunk(w: Weights, prefix: str, x: Tensor, variant: str, *, frozen: bool = False) -> list[Tensor]:
    """Stem and four stages."""
    x = w.conv(f"{prefix}conv1", x, 64, 7, bias=False, stride=2)
    x = w.norm(f"{prefix}bn1", x, frozen=frozen).relu()
    taps = [x]
    x = F.max_pool2d(x, 3, 2, 1, ceil_mode=variant == "C")
    for stage, (depth, planes) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512)), start=1):
        last = stage == 4 and variant != "A"
        for block in range(depth):
            x = bottleneck(
                w,
                f"{prefix}layer{stage}.{block}",
                x,
                planes,
                stride=2 if block == 0 and stage > 1 and not last else 1,
                dilation=2 if last and variant == "C" else 1,
                project=block == 0,
                caffe=variant == "C",
                frozen=frozen,
            )
        taps.append(x)
    return taps


# ------------------------------------------------------------------------------------------------- EDN


def edn(w: Weights, image: Tensor) -> list[Tensor]:
    """Maps 1 to 5."""
    f = trunk(w, "backbone.", image, "A", frozen=True)
    for name in ("conv6", "conv7"):
        y = bottleneck(w, f"{name}.0.0", f[-1], 256, stride=2, project=True)
        f.append(bottleneck(w, f"{name}.0.1", y, 256))
    attention = f[6].flatten(2).mean(2)[:, :, None, None].sigmoid()
    widths = (32, 64, 256, 512, 512, 128, 128)
    r = _scpc_pair(w, 6, _inner(w, "a", 6, f[6] * attention, 128))
    rs = [r]
    for i in (5, 4, 3, 2, 1, 0):
        t = up(_inner(w, "b", i, r, widths[i] // 2), f[i])
        lateral = _inner(w, "a", i, f[i] * attention if i == 5 else f[i], widths[i] // 2)
        r = _scpc_pair(w, i, torch.cat([t, lateral], 1))
        rs.append(r)
    rs = rs[::-1]
    return [up(w.conv(f"cls{i + 1}", rs[i], 1, 1, bias=True), image) for i in range(5)]


def _inner(w: Weights, side: str, i: int, x: Tensor, out: int) -> Tensor:
    name = f"fpn.inners_{side}.{i}"
    return w.norm(f"{name}.bn", w.conv(f"{name}.conv", x, out, 1, bias=True)).relu()


def _scpc_pair(w: Weights, level: int, x: Tensor) -> Tensor:
    base = 32 if level < 2 else 24
    dilations = {0: (1, 2, 4, 8), 1: (1, 2, 4, 8), 2: (1, 2, 4, 8), 3: (1, 2, 3, 4), 4: (1, 2, 3, 4)}
    for block in (0, 1):
        name = f"fpn.fuse.{level}.{block}"
        width = x.shape[1] * base // 64
        y = w.norm(f"{name}.bn1", w.conv(f"{name}.conv1", x, 4 * width, 1, bias=False)).relu()
        groups = [y[:, j * width : (j + 1) * width] for j in range(4)]
        for j, dilation in enumerate(dilations.get(level, (1, 1, 1, 1))):
            before = groups[j] if j == 0 else groups[j - 1] + groups[j]
            conv = w.conv(f"{name}.convs.{j}", before, width, 3, bias=False, dilation=dilation)
            groups[j] = w.norm(f"{name}.bns.{j}", conv).relu()
        y = w.conv(f"{name}.conv3", torch.cat(groups, 1), x.shape[1], 1, bias=False)
        x = (w.norm(f"{name}.bn3", y) + x).relu()
    return x


# ------------------------------------------------------------------------------------------------ ICON


def icon(w: Weights, image: Tensor) -> list[Tensor]:
    """Maps 1 to 4 and the pose map."""
    _, l1, l2, l3, l4 = trunk(w, "encoder.", image, "A")
    x1, x2, x3, x4 = (_dfa(w, f"dfa{n}", x) for n, x in enumerate((l4, l3, l2, l1), start=1))
    x1 = _ice(w, "ice1", x1, x1)
    x2 = _ice(w, "ice1", x2, up(x3, x2))
    x3 = _ice(w, "ice2", x3, up(x4, x3))
    x4 = _ice(w, "ice2", x4, x4)
    o1, o2, o3, q = _pwv(w, x1, x2, x3)
    x3 = up(o3, x4)
    x4 = _f_block(w, "fuse", x4 * x3) + x4
    heads = zip(("1", "2", "3", "4", "5"), (o1, o2, x3, x4, q), strict=True)
    maps = [up(w.conv(f"predtrans{n}", x, 1, 3, bias=True), image) for n, x in heads]
    # in the published file, but never used
    for name in ("ice1", "ice2"):
        w.conv(f"{name}.conv_mask", x1, 1, 1, bias=True)
    _f_block(w, "pwv.fuse1", x1)
    return maps


def _dfa(w: Weights, name: str, x: Tensor) -> Tensor:
    ori = w.conv(f"{name}.oriConv", x, 64, 3, bias=True)
    asy = torch.zeros_like(ori)
    for kind, kernel in (("square", (3, 3)), ("ver", (3, 1)), ("hor", (1, 3))):
        branch = w.conv(f"{name}.asyConv.{kind}_conv", x, 64, kernel, bias=False)
        asy = asy + w.norm(f"{name}.asyConv.{kind}_bn", branch)
    atr = w.norm(f"{name}.atrConv.1", w.conv(f"{name}.atrConv.0", x, 64, 3, bias=True, dilation=2))
    atr = w.prelu(f"{name}.atrConv.2", atr)
    y = w.conv(f"{name}.conv2d", torch.cat([ori, asy, atr], 1), 64, 3, bias=True)
    return w.norm(f"{name}.bn2d", y).relu()


def _ice(w: Weights, name: str, x: Tensor, third: Tensor) -> Tensor:
    y = w.conv(f"{name}.conv_cross", torch.cat([x, x, third], 1), 64, 3, bias=False)
    y = w.norm(f"{name}.bn_cross", y).relu()
    context = ((y * y).flatten(2).sum(2) + 1e-5).sqrt()[:, :, None, None]
    g = w.conv(f"{name}.channel_add_conv.0", context, 8, 1, bias=True)
    mean, variance = g.mean(1, keepdim=True), g.var(1, unbiased=False, keepdim=True)
    scale = w.normal(f"{name}.channel_add_conv.1.weight", 8, 1, 1)
    shift = w.normal(f"{name}.channel_add_conv.1.bias", 8, 1, 1)
    g = (scale * (g - mean) / (variance + 1e-5).sqrt() + shift).relu()
    return y * w.conv(f"{name}.channel_add_conv.3", g, 64, 1, bias=True)


def _f_block(w: Weights, name: str, x: Tensor) -> Tensor:
    y = w.conv(f"{name}.1", w.conv(f"{name}.0", x, 64, 1, bias=True), 64, 3, bias=True)
    return w.norm(f"{name}.2", y).relu()


def _pwv(w: Weights, x1: Tensor, x2: Tensor, x3: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    xs = [up(x1, x2), x2, up(x3, x2)]
    y = w.norm("pwv.bn_trans", w.conv("pwv.conv_trans", torch.cat(xs, 1), 64, 3, bias=False)).relu()
    a = w.norm("pwv.bn_m", w.conv("pwv.conv_m", y, 8, 5, bias=False, padding=1)).sigmoid()
    pose = w.norm("pwv.bn_pose", w.conv("pwv.conv_pose", y, 128, 5, bias=False, padding=1))
    pose = w.norm("pwv.bn_caps", _em_routing(w, a, pose))
    q = w.norm("pwv.bn_rec", w.conv("pwv.conv_rec", pose, 64, 3, bias=False)).relu()
    up_q = up(q, x2)
    o = [
        w.norm(
            f"pwv.bn{n}", w.conv(f"pwv.conv{n}", torch.cat([xs[n - 1], up_q], 1), 64, 3, bias=False)
        ).relu()
        for n in (1, 2, 3)
    ]
    o[1] = _f_block(w, "pwv.fuse2", o[1] * o[0]) + o[1]
    o[2] = _f_block(w, "pwv.fuse3", o[2] * o[1]) + o[2]
    return o[0], o[1], o[2], q


def _em_routing(w: Weights, a: Tensor, pose: Tensor) -> Tensor:
    matrix = w.normal("pwv.emrouting.W", 72, 8, 4, 4, std=0.2)
    beta_u = w.normal("pwv.emrouting.beta_u", 1, 1, 8, 1)
    beta_a = w.normal("pwv.emrouting.beta_a", 1, 1, 8)
    side = (pose.shape[-1] + 2 - 3) // 2 + 1
    a, pose = F.pad(a, (1, 1, 1, 1)), F.pad(pose, (1, 1, 1, 1))
    out = pose.new_zeros(pose.shape[0], 128, side, side)
    for row in range(side):
        for column in range(side):
            window = (
                slice(None),
                slice(None),
                slice(2 * row, 2 * row + 3),
                slice(2 * column, 2 * column + 3),
            )
            a_i = a[window].flatten(2).transpose(1, 2).flatten(1)  # kernel position * 8 + capsule
            m_i = pose[window].reshape(-1, 8, 16, 9).permute(0, 3, 1, 2).reshape(-1, 72, 4, 4)
            v = (m_i[:, :, None] @ matrix[None]).flatten(3)
            out[:, :, row, column] = _em(v, a_i, beta_u[0, 0, :, 0], beta_a[0, 0])
    return out


def _em(v: Tensor, a_i: Tensor, beta_u: Tensor, beta_a: Tensor) -> Tensor:
    """`v` (B, i = 72, j = 8, h = 16); returns mu as (B, 128)."""
    r = torch.ones_like(v[..., 0])
    for it in range(3):
        big_r = r * a_i[:, :, None]
        s = big_r.sum(1)
        c = (big_r / (s[:, None] + 1e-12))[..., None]
        mu = (c * v).sum(1)
        var = (c * (v - mu[:, None]) ** 2).sum(1) + 1e-12
        lam = 0.01 * (1 - 0.95 ** (it + 1))
        a_j = torch.sigmoid(
            lam * (beta_a - ((beta_u[:, None] + 0.5 * var.log()) * s[..., None]).sum(-1))
        )
        ln_p = -0.5 * (var * math.log(2 * math.pi)).log().sum(-1)[:, None]
        ln_p = ln_p - ((v - mu[:, None]) ** 2 / (2 * var[:, None])).sum(-1)
        r = (ln_p + a_j.log()[:, None]).softmax(-1)
    return mu.flatten(1)


# --------------------------------------------------------------------------------------------- GateNet


def gatenet(w: Weights, image: Tensor) -> list[Tensor]:
    """The top-down map and the final one."""
    e = trunk(w, "", image, "B")
    t5 = _fold_aspp(w, e[4])
    t = [_cbp(w, f"dem{6 - n}", e[n - 1], out) for n, out in ((1, 64), (2, 64), (3, 128), (4, 256))]
    t.append(w.prelu("dem1.2", w.norm("dem1.1", t5)))
    d = t[4]
    parallel = []
    for n, out in ((5, 256), (4, 128), (3, 64), (2, 64), (1, 1)):
        if n < 5:
            d = up(d, e[n - 1])
        g = _gate(w, n, torch.cat([e[n - 1], d], 1))
        x = g[:, 0, None, None, None] * t[n - 1] + (d if n < 5 else 0)
        d = _cbp(w, f"output{6 - n}", x, out) if n > 1 else w.conv("output5.0", x, 1, 3, bias=True)
        parallel.append(g[:, 1, None, None, None] * t[n - 1])
    y = torch.cat([d, *(up(p, d) for p in parallel)], 1)
    y = w.prelu("out_res.2", w.norm("out_res.1", w.conv("out_res.0", y, 256, 3, bias=True)))
    y = w.prelu("out_res.5", w.norm("out_res.4", w.conv("out_res.3", y, 256, 3, bias=True)))
    y = w.conv("out_res.6", y, 1, 3, bias=True)
    return [up(d, image), up(d, image) + up(y, image)]


def _cbp(w: Weights, name: str, x: Tensor, out: int, kernel: int = 3, dilation: int = 1) -> Tensor:
    y = w.conv(f"{name}.0", x, out, kernel, bias=True, dilation=dilation)
    return w.prelu(f"{name}.2", w.norm(f"{name}.1", y))


def _fold_aspp(w: Weights, x: Tensor) -> Tensor:
    y = _cbp(w, "dem1.0.down_conv", x, 512)
    side = y.shape[-1] // 2
    folded = F.unfold(y, 2, stride=2).view(y.shape[0], 2048, side, side)
    branches = [_cbp(w, "dem1.0.conv1", folded, 1024, 1)]
    for n, dilation in ((2, 2), (3, 4), (4, 6)):
        branches.append(_cbp(w, f"dem1.0.conv{n}", folded, 1024, 3, dilation))
    pooled = _cbp(w, "dem1.0.conv5", folded.flatten(2).mean(2)[:, :, None, None], 1024, 1)
    branches.append(pooled.expand(-1, -1, side, side))
    y = _cbp(w, "dem1.0.fuse", torch.cat(branches, 1), 2048, 1).flatten(2)
    y = F.fold(y, (2 * side, 2 * side), 2, stride=2)
    return w.conv("dem1.0.up_conv", y, 512, 1, bias=True)


def _gate(w: Weights, level: int, x: Tensor) -> Tensor:
    name = f"attention_feature{6 - level}"
    index = 0
    for out in {5: (512, 128), 4: (256, 64), 3: (128,), 2: (64,), 1: ()}[level]:
        x = w.norm(f"{name}.{index + 1}", w.conv(f"{name}.{index}", x, out, 3, bias=True))
        x = w.prelu(f"{name}.{index + 2}", x)
        index += 3
    return w.conv(f"{name}.{index}", x, 2, 3, bias=True).sigmoid().flatten(2).mean(2)


# ------------------------------------------------------------------------------------------------- LDF


def ldf(w: Weights, image: Tensor) -> list[Tensor]:
    """body1, detail1, mask1, body2, detail2, mask2."""
    _, l1, l2, l3, l4 = trunk(w, "bkbone.", image, "A")
    features: dict[str, list[Tensor]] = {}
    for side in "bd":
        features[side] = []
        for n, x in ((5, l4), (4, l3), (3, l2), (2, l1)):
            y = w.conv(f"conv{n}{side}.0", x, 64, 1, bias=True)
            y = w.conv(f"conv{n}{side}.1", y, 64, 3, bias=True)
            features[side].append(w.norm(f"conv{n}{side}.2", y).relu())
    none = [torch.zeros_like(x) for x in features["b"]]
    b1, d1 = (_ldf_decoder(w, f"decoder{side}", features[side], none) for side in "bd")
    x = torch.cat([b1, d1], 1)
    feedback: dict[str, list[Tensor]] = {"b": [], "d": []}
    for n in (1, 2, 3, 4):
        x = _cbr(w, "encoder", str(n), x if n == 1 else F.max_pool2d(x, 2, 2))
        for side in "bd":
            feedback[side].insert(0, _cbr(w, "encoder", f"{n}{side}", x))
    b2, d2 = (_ldf_decoder(w, f"decoder{side}", features[side], feedback[side]) for side in "bd")
    maps = []
    for b, d in ((b1, d1), (b2, d2)):
        maps.append(up(w.conv("linearb", b, 1, 3, bias=True), image))
        maps.append(up(w.conv("lineard", d, 1, 3, bias=True), image))
        y = w.norm("linear.1", w.conv("linear.0", torch.cat([b, d], 1), 64, 3, bias=True)).relu()
        maps.append(up(w.conv("linear.3", y, 1, 3, bias=True), image))
    return maps


def _cbr(w: Weights, name: str, suffix: str, x: Tensor) -> Tensor:
    return w.norm(f"{name}.bn{suffix}", w.conv(f"{name}.conv{suffix}", x, 64, 3, bias=True)).relu()


def _ldf_decoder(w: Weights, name: str, u: list[Tensor], v: list[Tensor]) -> Tensor:
    o = _cbr(w, name, "0", u[0] + v[0])
    for n in (1, 2, 3):
        o = _cbr(w, name, str(n), u[n] + v[n] + up(o, u[n]))
    return o


# --------------------------------------------------------------------------------------------- PoolNet


def poolnet(w: Weights, image: Tensor) -> list[Tensor]:
    """The one map."""
    c = trunk(w, "base.resnet.", image, "C")
    p = w.conv("base.ppms_pre", c[4], 512, 1, bias=False)
    parts = [p]
    for index, n in enumerate((1, 3, 5)):
        pooled = F.adaptive_avg_pool2d(p, n)
        parts.append(
            up(w.conv(f"base.ppms.{index}.1", pooled, 512, 1, bias=False).relu(), p, corners=True)
        )
    g = w.conv("base.ppm_cat.0", torch.cat(parts, 1), 512, 3, bias=False).relu()
    infos = [
        w.conv(f"base.infos.{i}.0", up(g, c[3 - i], corners=True), out, 3, bias=False).relu()
        for i, out in enumerate((512, 256, 256, 128))
    ]
    converted = [
        w.conv(f"convert.convert0.{i}.0", x, out, 1, bias=False).relu()
        for i, (x, out) in enumerate(zip(c, (128, 256, 256, 512, 512), strict=True))
    ]
    x = converted[4]
    for i, out in enumerate((512, 256, 256, 128)):
        skip = converted[3 - i]
        s = _fam(w, i, x)
        s = w.conv(f"deep_pool.{i}.conv_sum", up(s, skip, corners=True) if i else s, out, 3, bias=False)
        x = w.conv(f"deep_pool.{i}.conv_sum_c", s + skip + infos[i], out, 3, bias=False)
    x = w.conv("deep_pool.4.conv_sum", _fam(w, 4, x), 128, 3, bias=False)
    return [up(w.conv("score.score", x, 1, 1, bias=True), image, corners=True)]


def _fam(w: Weights, layer: int, x: Tensor) -> Tensor:
    s = x
    for j, z in enumerate((2, 4, 8)):
        pooled = w.conv(f"deep_pool.{layer}.convs.{j}", F.avg_pool2d(x, z, z), x.shape[1], 3, bias=False)
        s = s + up(pooled, x, corners=True)
    return s.relu()


NETWORKS: dict[str, Callable[[Weights, Tensor], list[Tensor]]] = {
    "edn": edn,
    "icon": icon,
    "gatenet": gatenet,
    "ldf": ldf,
    "poolnet": poolnet,
}
# where each of our maps is among the published ones
ORDER = {
    "edn": (0, 1, 2, 3, 4),
    "icon": (3, 0, 1, 2, 4),
    "gatenet": (1, 0),
    "ldf": (5, 0, 1, 2, 3, 4),
    "poolnet": (0,),
}

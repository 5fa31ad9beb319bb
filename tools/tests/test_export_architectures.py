"""The architectures have the parameter names and shapes of the published networks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import nn

from ddiff_export import adm, bkse, clip, denoiser, diffusers_unet, edm, flow, ldm, lpips, pnp_flow, sit, vq
from ddiff_export.adm_blocks import Attention, TokenAttention, TransformerBlock, attend
from ddiff_export.checkpoint import without_init
from ddiff_export.errors import ExportError
from ddiff_export.random_weights import randomise
from stable_diffusion_vectors import weight


def made(build: Callable[[], nn.Module]) -> nn.Module:
    with without_init():
        return build()


def digest(module: nn.Module) -> str:
    """Digest of the names with their shapes."""
    lines = sorted(f"{name} {list(value.shape)}" for name, value in module.state_dict().items())
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


# Number of weights, and digest of the names with their shapes, of the modules of the
# publications' code.
PUBLISHED: dict[str, tuple[Callable[[], nn.Module], int, str]] = {
    **{
        f"adm {name}": (lambda c=adm.CONFIGS[name]: adm.UNet(c), count, names)
        for name, count, names in (
            ("ffhq_10m", 93563910, "1f4f09f8b00638e8850586abfafd601d0ff0a1d82c5deae5a073de413d59c434"),
            ("imagenet_64", 295904454, "cdbf32c1675c84fb6da4f769818eb4980bc71961a09ee1fd72653565ec04d974"),
            ("imagenet_128", 421529606, "c56d52445fdb2112b94cacc66f3e72fb277c6468c0a3907521619b0fc87ef37e"),
            ("imagenet_256", 553838086, "e357403fc997eb00c7f3c70091fdc5286057847a0e1ffc31f6140f1fed305261"),
            ("imagenet_256_uncond", 552814086, "77e18ded5689d791c0f80de615de87c7b701e6613a73e6856ce4baeebb4a6524"),
            ("imagenet_512", 558997638, "ab03f15f765591ce8e1ffca2860c02fea26bbe6e0300e58ff6576c7660d272dd"),
            ("lsun_bedroom", 552814086, "77e18ded5689d791c0f80de615de87c7b701e6613a73e6856ce4baeebb4a6524"),
        )
    },
    **{
        f"ldm {name}": (lambda c=ldm.CONFIGS[name].unet: adm.UNet(replace(c, classes=0)), count, names)
        for name, count, names in (
            ("ffhq256", 274056163, "61c38f880cdb7ca3b5a46dee856f61f55b0cd68598a55e3e0cce5e4d81c25127"),
            ("imagenet256", 400920579, "7b0f2712566147edde02ec0a2dfce603c0fd5b76b6e775a818fb9de53be32c27"),
            ("sd15", 859520964, "b0828585f6719ebf3393cd4f537c8b83e90dbddbb12e34b197798bc05c43a9ca"),
            ("sd21", 865910724, "9daee6b4c2af8b7015b0fe33dbe0bd998d631b2eefe73f129615449a5a2396ca"),
            ("sdxl", 2567463684, "a2e9f9953184fd3421941f89c69de697e83f4301d74f5059f2d52c42d7810392"),
        )
    },
    "flow cfm_cifar10": (
        lambda: adm.UNet(flow.CONFIGS["cfm_cifar10"]), 35746307, "dbeebed75e8e4707339f5e07456ad357dc1fb901eb88d37f6b77451fffbf37be"
    ),
    **{
        f"flow {name}": (lambda c=flow.CONFIGS[name]: pnp_flow.UNet(c), count, names)
        for name, count, names in (
            ("pnp_celeba", 34473667, "61277e134b2aa9c1562f8f70f4206fec533f7d34484a1a6a6372074c035946cf"),
            ("pnp_afhq_cat", 31045827, "04f110cc9a7954c01722c6e8c30285f9b1098604b04e007e75927d4bd4e36ff8"),
        )
    },
    # Without the part for augmented training and the constants of the resampling.
    "edm ffhq": (
        lambda: edm.UNet(edm.config("SongUNet", {"img_resolution": 64, "in_channels": 3, "out_channels": 3, "augment_dim": 9}, "")),
        61804419, "3b4d1d288d3901a72ea169de9aeaab91a2f926b4d526d441668ceb2fd690c5cf",
    ),
    "edm imagenet": (
        lambda: edm.UNet(edm.config("DhariwalUNet", {"img_resolution": 64, "in_channels": 3, "out_channels": 3, "label_dim": 1000}, "")),
        295899267, "bb76adc17a660269dfa30f0d6111f3ae1220776e675784f45d453f99c44806f5",
    ),
    "sit": (lambda: sit.SiT(ldm.CONFIGS["sit_xl_2"].unet), 675129632, "2262e0bf0c1151e01df4c7da3f57d5867ec42bd315133f3088d37eb9c6cb8f8a"),
    "vq-f4": (lambda: vq.FirstStage(vq.Config()), 55322782, "56a2c53042a2ae6429345af0f5d6f9e0b3757aa0027fafe79dccc1cd2916673a"),
    "kl-f8": (lambda: vq.FirstStage(ldm.CONFIGS["sd15"].first_stage), 83653863, "5c5821b036193b0effb3adf049e2c1c81c13c11351273652c09fab3be5aa1501"),
    "clip": (lambda: clip.Encoder(clip.Config()), 123060480, "a49bc0b832a1e5c17c35c13ac3db12ef2bdb60e63f5914aae507030145c51c49"),
    "open clip": (lambda: clip.Encoder(ldm.CONFIGS["sd21"].text), 340387840, "9a375520eeec0ca281980b7189c60c556b0841e56e139f2d4feff0853ac5c3ac"),
    "bkse": (lambda: bkse.Wizard(bkse.CONFIGS["gopro_wvae"]), 115265475, "a77ee1c9433857a5c0abce5e673a6df8532ca7de1ab4f3dc20478f1af557d53f"),
    "bkse without vae": (lambda: bkse.Wizard(bkse.CONFIGS["gopro_wovae"]), 49205187, "7e70639320e4022785cb3c1d430677b57ca864eca7b92169dbd1a46598a08206"),
    "drunet": (lambda: denoiser.DRUNet(denoiser.CONFIGS["drunet_color"]), 32640960, "f13de1d91dc40682edb7eefd95685be71e5c76b6c6972075ffd74455b073d066"),
    "drunet grey": (lambda: denoiser.DRUNet(denoiser.CONFIGS["drunet_gray"]), 32638656, "8fec68f09fb1a8ac0ce6c1a8e864f60bee2ebf8afa65e98cd68406d125eb9717"),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_is_the_published_architecture(name: str) -> None:
    build, count, names = PUBLISHED[name]
    module = made(build)
    assert sum(p.numel() for p in module.parameters()) == count
    assert digest(module) == names


def test_unet_of_pnp_flow() -> None:
    """The numbers are every 4999th value of annegnx/PnP-Flow at ee5b159, with one residual block and at most 64 channels at each level."""
    c = flow.CONFIGS["pnp_celeba"].tiny()
    network = pnp_flow.load(c, {name: weight("pnp_flow", name, value.shape) for name, value in pnp_flow.UNet(c).state_dict().items()}, "test")
    x = torch.randn(1, 3, 128, 128, generator=torch.Generator().manual_seed(2))
    want = [0.020174, -0.03636, -0.736764, -1.084936, -0.262637, 1.002544, 0.676793, 0.386605, -0.521595, 0.859483]
    torch.testing.assert_close(network(x, torch.tensor([0.3])).flatten()[::4999], torch.tensor(want), rtol=0, atol=1e-4)


def test_sit() -> None:
    """The numbers are every 53rd value of willisma/SiT at 947f95b without a class, with two blocks of 48 channels for latents of 8x8. It predicts x - n
    at the share of the image, so that a prior, which has the share of noise, has another sign and time."""
    c = ldm.CONFIGS["sit_xl_2"].tiny()
    state = {f"model.diffusion_model.{name}": weight("sit", name, value.shape) for name, value in sit.SiT(c.unet).state_dict().items()}
    state |= {f"first_stage_model.{name}": value for name, value in vq.FirstStage(c.first_stage).state_dict().items()}
    network = ldm.load(c, state, "test").unet
    x = torch.randn(2, 4, 8, 8, generator=torch.Generator().manual_seed(2))
    want = [-0.385753, 0.675916, 0.248404, 0.965205, 0.054271, 0.50998, 1.149668, 0.42641, 0.392592, -0.44232]
    torch.testing.assert_close(-network(x, 1 - torch.tensor([0.3, 0.8])).flatten()[::53], torch.tensor(want), rtol=0, atol=1e-5)
    with pytest.raises(ExportError, match="--class: 8 is outside 0..5"):
        ldm.load(c, state, "test", 8)


# Numbers of weights that the model pages state.
@pytest.mark.parametrize(
    ("widths", "attention", "count"),
    [([128, 256, 256, 256], 1, 35746307), ([128, 128, 256, 256, 512, 512], 4, 113673219)],
    ids=["ddpm-cifar10-32", "ddpm-celebahq-256"],
)
def test_diffusers_unets(widths: list[int], attention: int, count: int) -> None:
    n = len(widths)
    down = ["AttnDownBlock2D" if i == attention else "DownBlock2D" for i in range(n)]
    up = ["AttnUpBlock2D" if i == n - 1 - attention else "UpBlock2D" for i in range(n)]
    fields = {"attention_head_dim": None, "block_out_channels": widths, "down_block_types": down, "up_block_types": up}
    assert sum(p.numel() for p in diffusers_unet.build(diffusers_unet.config(fields, "test")).parameters()) == count


@pytest.mark.parametrize(
    ("network", "trunk", "widths"),
    [
        ("alex", 2469696, [64, 192, 384, 256, 256]),
        ("vgg", 14714688, [64, 128, 256, 512, 512]),
        ("squeeze", 722496, [64, 128, 256, 384, 384, 512, 512]),
    ],
)
def test_lpips_trunks(network: str, trunk: int, widths: list[int]) -> None:
    module = lpips.build(network)
    assert sum(p.numel() for p in module.features.parameters()) == trunk
    assert [getattr(module, f"lin{i}").model[1].weight.shape[1] for i in range(len(widths))] == widths


def test_one_token_needs_no_attention() -> None:
    block = randomise(TransformerBlock(32, heads=2, context=24), 1)
    context, x = torch.randn(24), torch.randn(2, 5, 32)
    block.settle(context[None])
    full = TokenAttention.forward(block.attn2, x, context.expand(2, 1, 24))
    torch.testing.assert_close(full, block.constant.expand_as(full), rtol=0, atol=1e-5)


def test_attention_by_its_definition() -> None:
    q, k, v = torch.randn(3, 2, 4, 8, 6)
    weight = torch.softmax(torch.einsum("nhct,nhcs->nhts", q, k) / 8**0.5, dim=-1)
    torch.testing.assert_close(attend(q, k, v), torch.einsum("nhts,nhcs->nhct", weight, v))


def test_attention_orders_differ_by_a_permutation() -> None:
    older, newer = (Attention(32, heads=2, newer_order=order) for order in (False, True))
    randomise(older, 2)
    newer.load_state_dict(older.state_dict())
    order = torch.arange(96).reshape(2, 3, 16).permute(1, 0, 2).reshape(-1)
    newer.qkv.weight.data, newer.qkv.bias.data = older.qkv.weight.data[order], older.qkv.bias.data[order]
    x = torch.randn(2, 32, 4, 6)
    torch.testing.assert_close(newer(x), older(x))


def test_averages_replace_the_last_weights() -> None:
    c = ldm.CONFIGS["ffhq256"].tiny()
    unet, stage = randomise(adm.UNet(c.unet), 3), randomise(vq.FirstStage(c.first_stage), 4)
    state = ldm.published(ldm.Model(c, unet, stage, 1.0), None)
    averages = {f"model_ema.diffusion_model{k.replace('.', '')}": v + 1 for k, v in unet.state_dict().items()}
    loaded = ldm.load(c, state | averages | {"model_ema.decay": torch.tensor(0.99)}, "test")
    torch.testing.assert_close(loaded.unet.out[2].bias, unet.out[2].bias + 1)
    last = ldm.load(c, state | averages, "test", ema=False)
    torch.testing.assert_close(last.unet.out[2].bias, unet.out[2].bias)


def test_kl_first_stage_has_the_mean_and_needs_its_scale() -> None:
    c = ldm.CONFIGS["churches256"].tiny()
    unet, stage = randomise(adm.UNet(c.unet), 3), randomise(vq.FirstStage(c.first_stage), 4)
    state = ldm.published(ldm.Model(c, unet, stage, 0.25), None)
    model = ldm.load(c, state, "test")
    assert set(ldm.parts(model)) == {"encoder", "decoder", "unet"}
    x = torch.rand(1, 3, 32, 32) * 2 - 1
    with torch.no_grad():
        moments = stage.quant_conv(stage.encoder(x))
        z = ldm.parts(model)["encoder"](x)
        assert moments.shape[1] == 2 * z.shape[1] == 8
        torch.testing.assert_close(z, 0.25 * moments[:, :4])
        torch.testing.assert_close(ldm.parts(model)["decoder"](z), stage.decoder(stage.post_quant_conv(moments[:, :4])))
    del state["scale_factor"]
    with pytest.raises(ExportError, match="scale_factor is missing"):
        ldm.load(c, state, "test")


def test_card_states_class_and_first_stage() -> None:
    c = ldm.CONFIGS["imagenet256"].tiny()
    unet, stage = randomise(adm.UNet(replace(c.unet, classes=0)), 3), randomise(vq.FirstStage(c.first_stage), 4)
    state = ldm.published(ldm.Model(c, unet, stage, 1.0), torch.randn(c.unet.classes, c.unet.context))
    for label, want in ((3, "3"), (None, "none")):
        card = json.loads(ldm.bundle_card(ldm.load(c, state, "test", label), "n", "t", {}))
        assert (card["class"], card["first_stage"]) == (want, "vq")


def test_older_attention_names() -> None:
    c = diffusers_unet.config({"block_out_channels": [32, 32], "down_block_types": ["DownBlock2D", "AttnDownBlock2D"], "up_block_types": ["AttnUpBlock2D", "UpBlock2D"]}, "test")
    state = randomise(diffusers_unet.UNet(c), 5).state_dict()
    older = {}
    for name, value in state.items():
        for old, new in diffusers_unet.OLDER.items():
            name = name.replace(f".{new}.", f".{old}.")
        older[name] = value
    assert older.keys() != state.keys()
    assert diffusers_unet.newer_names(older).keys() == state.keys()

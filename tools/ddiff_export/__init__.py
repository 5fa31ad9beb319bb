"""Turns published checkpoints into ONNX files with a model card that ddiff can use.

The architectures are written here from their definitions; names and shapes of their
parameters are those of the published files, so that a state dict fits or is refused.

    adm, adm_blocks     U-Nets of guided diffusion (ADM), also those of latent diffusion
    vq                  first stage of latent diffusion: encoder, quantiser, decoder
    diffusers_unet      U-Net of a local directory in the diffusers layout
    denoiser, tweedie   denoisers D(x, sigma), and the prior that they are by Tweedie's formula
    bkse                the learned blur of BKSE
    lpips               the metric LPIPS
    checkpoint          reading files of weights without running what is in them
    onnx_file           PyTorch module to ONNX file, with metadata and external data
    half, vjp           passes over ONNX graphs: half precision, reverse mode
    card, vectors       the model card; reference inputs and outputs beside a file
    selftest            all of it with random weights, checked by the ddiff program

`python3 -m ddiff_export --help` lists the commands; tools/README.md describes them.
"""

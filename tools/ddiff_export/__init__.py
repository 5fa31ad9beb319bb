"""Converts published checkpoints to ONNX files with a model card for ddiff.

The architectures are implemented from their definitions. Names and shapes of their parameters
equal those of the published files: a state dict fits or is refused.

    adm, adm_blocks     U-Nets of guided diffusion (ADM), also those of latent diffusion
    vq                  first stage of latent diffusion: encoder, quantiser, decoder
    stable_diffusion_onnx, tokens, layout   Stable Diffusion in ONNX files
    sit                 transformers SiT
    diffusers_unet      U-Net of a local directory in the diffusers layout
    denoiser, tweedie   denoisers D(x, sigma), and priors from denoisers by Tweedie's formula
    bkse                the learned blur of BKSE
    lpips               the metric LPIPS
    checkpoint, pickles readers of weight files that run no code from the files
    onnx_file           PyTorch module to ONNX file, with metadata and external data
    half                a pass over ONNX graphs: half precision
    card, vectors       the model card; reference inputs and outputs beside a file
    selftest            exports with random weights, checked by the ddiff program

`python3 -m ddiff_export --help` lists the commands; tools/README.md describes them.
"""

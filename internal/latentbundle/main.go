// Command latentbundle writes a latent prior that needs no training, see package haar.
//
//	go run ./internal/latentbundle [--prior FILE] [--levels N] [--step S] DIR
package main

import (
	"flag"
	"fmt"
	"os"

	"ddiff/internal/restore/haar"
	"ddiff/internal/restore/prior"
)

func main() {
	var cfg haar.Config
	pixels := flag.String("prior", prior.Bundled, "pixel prior: an ONNX `FILE` with a card, or bundled")
	flag.IntVar(&cfg.Levels, "levels", 2, "levels of the transform, 1 to 3")
	flag.Float64Var(&cfg.Step, "step", 0, "spacing of quantised latents; 0 for no quantiser")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: latentbundle [--prior FILE] [--levels N] [--step S] DIR")
		os.Exit(2)
	}
	if err := write(*pixels, flag.Arg(0), cfg); err != nil {
		fmt.Fprintln(os.Stderr, "latentbundle:", err)
		os.Exit(1)
	}
	fmt.Printf("wrote %s\n", flag.Arg(0))
}

func write(pixels, dir string, cfg haar.Config) error {
	data, err := prior.Read(pixels)
	if err != nil {
		return err
	}
	return haar.Write(dir, data, cfg)
}

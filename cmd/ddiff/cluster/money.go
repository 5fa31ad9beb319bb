package cluster

import (
	"fmt"
	"strconv"
	"strings"

	"ddiff/coordinator"
	"ddiff/internal/cli"
)

// money reads the prices and caps of the flags.
func (o coordinatorOptions) money() (prices coordinator.Prices, caps coordinator.Caps, err error) {
	prices, err = amounts(o.prices, "--price", "PRICE, POOL=PRICE or POOL=PRICE/h")
	if err == nil {
		err = usageOf("--price", prices.Validate())
	}
	for _, text := range o.caps { // of a month
		if err == nil && strings.HasSuffix(text, "/h") {
			err = cli.Usage(fmt.Errorf("--cap: %q has a price's /h; a cap is a cost in a month: give OWNER=COST", text))
		}
	}
	if err == nil {
		caps, err = amounts(o.caps, "--cap", "OWNER=COST or *=COST")
	}
	if err == nil {
		err = usageOf("--cap", caps.Validate(prices))
	}
	return prices, caps, err
}

// amounts reads texts of the form NAME=NUMBER. NAME= may be missing, and /h divides the number by the seconds of an hour.
func amounts(texts []string, flag, want string) (map[string]float64, error) {
	out := map[string]float64{}
	for _, text := range texts {
		at := strings.LastIndexByte(text, '=')
		name, number := text[:max(at, 0)], text[at+1:]
		number, perHour := strings.CutSuffix(number, "/h")
		amount, err := strconv.ParseFloat(number, 64)
		if _, repeated := out[name]; err != nil || repeated {
			return nil, cli.Usage(fmt.Errorf("%s: %q is no amount, or repeats one; give %s, separated by commas", flag, text, want))
		}
		if perHour {
			amount /= 3600
		}
		out[name] = amount
	}
	return out, nil
}

// usageOf returns the error of a flag's value as one of usage, nil without an error.
func usageOf(flag string, err error) error {
	if err == nil {
		return nil
	}
	return cli.Usage(fmt.Errorf("%s: %w", flag, err))
}

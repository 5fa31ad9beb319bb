package coordinator

import (
	"fmt"
	"maps"
	"slices"

	"ddiff/internal/record"
	"ddiff/manifest"
)

// maxAmount is the largest price of a device-second, and the largest cap.
const maxAmount = 1e9

// Prices are prices of a device-second by pool. The price of the pool "" is that of all pools without one. Machines that their owner may take
// away have another price if their workers are a pool of their own.
type Prices map[string]float64

// Validate returns an error that names a wrong price.
func (p Prices) Validate() error {
	for _, pool := range slices.Sorted(maps.Keys(p)) {
		if pool != "" {
			if err := manifest.CheckPool(pool); err != nil {
				return err
			}
		}
		if err := checkAmount(pool, p[pool]); err != nil {
			return err
		}
	}
	return nil
}

func checkAmount(of string, amount float64) error {
	if !(amount >= 0 && amount <= maxAmount) {
		return fmt.Errorf("%s=%g is outside 0..%g", of, amount, maxAmount)
	}
	return nil
}

// of returns the price of a pool, and whether it has one.
func (p Prices) of(pool string) (price float64, ok bool) {
	if price, ok = p[pool]; !ok {
		price, ok = p[""]
	}
	return price, ok
}

// charge sets the costs of uses, and returns the first pool without a price; empty: all have one.
func (p Prices) charge(uses []record.Use) (free string) {
	for i, u := range uses {
		price, ok := p.of(u.Pool)
		if !ok && free == "" {
			free = u.Pool
		}
		uses[i].Cost = u.Seconds * price
	}
	return free
}

package cluster

import (
	"fmt"
	"strings"

	"ddiff/coordinator/budget"
	"ddiff/manifest"
)

const maxPrice = 1e9

// parseQuotas reads the flags --quota, and checks --price.
func parseQuotas(flags []string, price float64) (budget.Quotas, error) {
	if !(price >= 0 && price <= maxPrice) {
		return nil, fmt.Errorf("--price: %g is outside 0..%g", price, maxPrice)
	}
	quotas := budget.Quotas{}
	for _, text := range flags {
		colon := strings.LastIndex(text, ":") // an owner may contain one
		if colon < 1 {
			return nil, fmt.Errorf("--quota: %q has no owner; give OWNER:LIMITS, as in ann:seconds=36000", text)
		}
		owner := text[:colon]
		if _, repeated := quotas[owner]; repeated {
			return nil, fmt.Errorf("--quota: %s is repeated; give each owner one quota", owner)
		}
		var b manifest.Budget
		if err := b.Set(text[colon+1:]); err != nil {
			return nil, fmt.Errorf("--quota %s: %w", owner, err)
		}
		if b.Cost > 0 && price == 0 {
			return nil, fmt.Errorf("--quota %s: a cost needs a price; give --price too", owner)
		}
		quotas[owner] = b
	}
	return quotas, nil
}

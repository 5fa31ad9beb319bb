package manifest

import "fmt"

// DefaultPool is the pool of workers that name none.
const DefaultPool = "default"

// CheckPool accepts the names of pools of workers: at most 30 characters of [a-z0-9-], the first and the last no dash.
func CheckPool(name string) error {
	const longest = 30
	if name == "" || len(name) > longest || name != token(name) {
		return fmt.Errorf("%q is no name of a pool; want at most %d characters of a-z, 0-9 and single -, as in a100-spot", clip(name), longest)
	}
	return nil
}

package prior

import "sync"

// valueCounts holds the results of [Prior.Values] by height and width.
type valueCounts struct {
	mu sync.Mutex
	of map[[2]int]float64
}

// Values returns the number of values that the network computes for one image or latent of a height and width in the prior's space:
// those that a gradient through it keeps. Values of unknown shape do not count. It is 0 for a shape that the network does not take.
func (p *Prior) Values(height, width int) float64 {
	p.values.mu.Lock()
	defer p.values.mu.Unlock()
	key := [2]int{height, width}
	if n, ok := p.values.of[key]; ok {
		return n
	}
	if p.values.of == nil {
		p.values.of = map[[2]int]float64{}
	}
	sum := 0.0
	types, err := p.model.Types(map[string][]int{p.x.Name: {1, p.channels(), height, width}, p.t.Name: {1}})
	if err == nil {
		delete(types, p.x.Name)
		delete(types, p.t.Name)
		for _, v := range types {
			sum += float64(v.Size())
		}
	}
	p.values.of[key] = sum
	return sum
}

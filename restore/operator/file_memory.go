package operator

import (
	"ddiff/restore/onnx"
	"ddiff/restore/onnx/modelfile"
)

// Values returns the number of values that the nodes of the file compute for one image of a shape, with those of its gradient
// if the file has one. Values of unknown shape do not count. It is 0 for an outline and for a shape that the file does not take.
func (f *File) Values(s Shape) float64 {
	if f.model == nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n, ok := f.values[s]; ok {
		return n
	}
	if f.values == nil {
		f.values = map[Shape]float64{}
	}
	n := f.count(s)
	f.values[s] = n
	return n
}

func (f *File) count(s Shape) (sum float64) {
	lengths, inputs := map[string]int{}, map[string][]int{portImage: s.Dims(1)}
	if err := f.x.Bind(s.Dims(1), lengths); err != nil {
		return 0
	}
	given := map[string]*modelfile.Port{}
	if f.draw != nil {
		given[f.draw.Name] = f.draw
	}
	if f.Differentiates {
		given[portWeights] = &f.y
	}
	for name, p := range given {
		dims, err := f.itemShape(*p, lengths)
		if err != nil {
			return 0
		}
		inputs[name] = append([]int{1}, dims...)
	}
	types, err := onnx.Types(f.model, inputs)
	if err != nil {
		return 0
	}
	for _, p := range f.model.Inputs() {
		delete(types, p.Name)
	}
	for _, v := range types {
		sum += float64(elements(v.Dims))
	}
	return sum
}

package manifest

import "testing"

// What changes the work of an item changes its plan; images, noise and runs do not.
func TestPlans(t *testing.T) {
	t.Parallel()
	parse := func(text string) *Spec {
		t.Helper()
		s, err := Parse("c.yaml", []byte(text), "/")
		must(t, err)
		return s
	}
	const base = "dataset: {path: /a, size: 64}\ntasks: [hdr, {name: super_resolution, params: {factor: 4}}]\nmethods: [ddiff, dps]\n"
	want := Plans(Row{}, parse(base))
	if len(want) != 4 {
		t.Fatalf("%d plans", len(want))
	}
	share := func(s *Spec, row Row) (equal, items int) {
		for p, n := range Plans(row, s) {
			items += n
			if want[p] > 0 {
				equal++
			}
		}
		return equal, items
	}
	for text, counts := range map[string][2]int{
		"sigma: 0.2\nseed: 5\nname: x\nruns: 3\nbatch: 2\nattempts: 4\nbudget: {items: 5}\nselect: mean": {4, 12},
		"steps: 20": {0, 4}, "solver: {gamma0: 3}": {0, 4}, "preset: fast": {0, 4}, "prior: /p.onnx": {0, 4}, "precision: float16": {0, 4}, "tile: 64": {0, 4},
	} {
		if equal, items := share(parse(base+text), Row{}); equal != counts[0] || items != counts[1] {
			t.Errorf("%s: %d equal plans, %d items; want %v", text, equal, items, counts)
		}
	}
	s := parse(base)
	if equal, items := share(s, Row{Overrides: Overrides{Task: "hdr"}}); equal != 2 || items != 2 {
		t.Errorf("a row's task: %d, %d", equal, items)
	}
	s.Tasks[1].Params["factor"] = 2
	if equal, items := share(s, Row{}); equal != 2 || items != 4 {
		t.Errorf("another factor: %d, %d", equal, items)
	}
	s.Dataset.Fit = FitPad
	if _, items := share(s, Row{}); items != 0 {
		t.Errorf("images of different sizes: %d", items)
	}
}

package sweep

import "testing"

// TestUnresolvedCellMayBe: the items of a row that cannot be read may belong to any cell with equal known properties.
func TestUnresolvedCellMayBe(t *testing.T) {
	t.Parallel()
	full := Cell{Problem{Task: "hdr", Params: "a=1;b=2", Sigma: 0.05, Size: "64x64"}, Approach{Method: "ddiff"}}
	for name, change := range map[string]func(*Cell){
		"task": func(c *Cell) { c.Task = "inpainting" }, "method": func(c *Cell) { c.Method = "dps" },
		"sigma": func(c *Cell) { c.Sigma = 0.1 }, "params": func(c *Cell) { c.Params = "a=2" },
	} {
		unread := full
		unread.Size, unread.Params = "", "a=1"
		if !unread.MayBe(full) {
			t.Fatalf("%+v may not be %+v", unread, full)
		}
		if change(&unread); unread.MayBe(full) {
			t.Errorf("another %s: %+v may be %+v", name, unread, full)
		}
	}
	if full.MayBe(Cell{Problem{Task: "hdr"}, Approach{Method: "ddiff"}}) {
		t.Error("an unresolved cell has items")
	}
}

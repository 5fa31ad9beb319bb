package restore

import (
	"errors"
	"slices"
	"testing"
)

// model records that it was closed.
type model struct {
	name   string
	closed *[]string
}

func (m *model) Close() error {
	*m.closed = append(*m.closed, m.name)
	return nil
}

func TestRecentKeepsTheLastUsed(t *testing.T) {
	t.Parallel()
	var built, closed []string
	r := recent[*model]{limit: 2}
	get := func(name string) {
		t.Helper()
		m, err := r.get(name, func() (*model, error) {
			built = append(built, name)
			return &model{name, &closed}, nil
		})
		if err != nil || m.name != name {
			t.Fatalf("get %s: %v, %v", name, m, err)
		}
	}
	for _, name := range []string{"a", "b", "a", "c", "a", "b"} {
		get(name)
	}
	if want := []string{"a", "b", "c", "b"}; !slices.Equal(built, want) {
		t.Errorf("built %v, want %v", built, want)
	}
	if want := []string{"b", "c"}; !slices.Equal(closed, want) {
		t.Errorf("closed %v, want %v", closed, want)
	}
	if err := r.clear(); err != nil || len(closed) != 4 {
		t.Errorf("closed %v, error %v, want everything that was built", closed, err)
	}
}

func TestRecentForgetsFailures(t *testing.T) {
	t.Parallel()
	r := recent[*model]{limit: 2}
	broken := errors.New("broken")
	if _, err := r.get("a", func() (*model, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if m, err := r.get("a", func() (*model, error) { return &model{name: "a"}, nil }); err != nil || m.name != "a" {
		t.Errorf("second try: %v, %v", m, err)
	}
}

// A value keeps its place under its new key, the most recently used one that fits is taken, and an error changes nothing.
func TestRecentRekeys(t *testing.T) {
	t.Parallel()
	var closed []string
	r := recent[*model]{limit: 2}
	get := func(key string) string {
		t.Helper()
		m, err := r.get(key, func() (*model, error) { return &model{"new " + key, &closed}, nil })
		if err != nil {
			t.Fatal(err)
		}
		return m.name
	}
	get("a")
	get("b")
	broken := errors.New("broken")
	var asked []string
	rekey := func(key string, fits bool, err error) {
		t.Helper()
		asked = nil
		got := r.rekey(key, func(m *model) (bool, error) {
			asked = append(asked, m.name)
			return fits && m.name == "new a", err
		})
		if !errors.Is(got, err) {
			t.Errorf("rekey %s: %v", key, got)
		}
	}
	rekey("a", true, nil) // is found already
	if asked != nil {
		t.Errorf("asked %v for a known key", asked)
	}
	rekey("c", false, nil)
	rekey("c", true, broken)
	rekey("c", true, nil)
	if !slices.Equal(asked, []string{"new b", "new a"}) {
		t.Errorf("asked %v", asked)
	}
	if got := get("c"); got != "new a" {
		t.Errorf("key c has %q", got)
	}
	if get("a"); !slices.Equal(closed, []string{"new b"}) { // b was used before c
		t.Errorf("closed %v", closed)
	}
	if err := r.clear(); err != nil || len(closed) != 3 {
		t.Errorf("closed %v, %v", closed, err)
	}
}

package selection

import (
	"errors"
	"testing"
)

func TestParseRule(t *testing.T) {
	t.Parallel()
	if r, err := Parse(""); err != nil || r != First {
		t.Errorf("Parse of nothing = %q, %v, want first", r, err)
	}
	if _, err := Parse("best"); !errors.Is(err, ErrUnknownRule) {
		t.Errorf("Parse(best) = %v, want ErrUnknownRule", err)
	}
}

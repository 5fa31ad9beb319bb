package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ddiff/restore/item"
)

func TestMessagesOfOtherVersions(t *testing.T) {
	t.Parallel()
	it := item.Item{
		Campaign: "demo-00000000", Index: 3, Name: "cat", Image: &item.Source{Path: "cat.png", SHA256: strings.Repeat("ab", 32)}, Width: 256, Height: 192,
		Fit: item.FitCenterCrop, Task: "gaussian_deblur", Sigma: 0.05, Method: "ddiff", Solver: json.RawMessage(`{"steps":100}`), Prior: strings.Repeat("cd", 32),
	}
	it.Mask = &item.Source{Path: "m.png", SHA256: "1"}
	if err := it.Identify(); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(it)
	if err != nil {
		t.Fatal(err)
	}
	for name, payload := range map[string][]byte{
		"this version": EncodeItem(data), "earlier version": data,
		"optional field": append([]byte(`{"note":{"a":1},`), data[1:]...),
	} {
		got, err := Decode[item.Item](payload)
		if err == nil {
			err = got.CheckID()
		}
		if again, _ := json.Marshal(got); err != nil || string(again) != string(data) {
			t.Errorf("%s: %v, item %s, want %s", name, err, again, data)
		}
	}
	// A newer schema is named even if a field has another type.
	newer := fmt.Appendf(nil, `{"schema":%d,"id":7}`, item.SchemaVersion+1)
	if _, err := Decode[item.Item](newer); !errors.Is(err, item.ErrNewer) {
		t.Errorf("error %v, want ErrNewer", err)
	}
	if _, err := Decode[Preflight](newer); !errors.Is(err, item.ErrNewer) {
		t.Errorf("error %v, want ErrNewer", err)
	}
	for _, broken := range []string{"", "{", `{"id":7}`, "[]"} {
		if _, err := Decode[item.Item]([]byte(broken)); err == nil || errors.Is(err, item.ErrNewer) {
			t.Errorf("%q: error %v, want a decoding error", broken, err)
		}
	}
	it.Sigma *= 2 // as if the worker did not know the setting
	if err := it.CheckID(); !errors.Is(err, item.ErrNewer) {
		t.Errorf("error %v, want ErrNewer", err)
	}
}

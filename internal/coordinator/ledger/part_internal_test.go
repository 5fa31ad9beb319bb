package ledger

import (
	"crypto/sha256"
	"errors"
	"reflect"
	"strings"
	"testing"

	"ddiff/internal/record"
	"ddiff/restore/item"
)

func testPart(t *testing.T) *part {
	t.Helper()
	p := &part{partHeader: partHeader{Campaign: "c", Stream: 5, Seq: 1 << 60}}
	for i, e := range []partEntry{{}, {state: Done}, {state: Failed, round: 300, reason: "no image"}, {state: Dead, round: 1, reason: "no image"}} {
		e.id, _ = item.ParseIdentity(id(i))
		p.entries = append(p.entries, e)
	}
	return p
}

func TestPartRoundTrip(t *testing.T) {
	want := testPart(t)
	data, err := want.encode()
	must(t, err)
	got, err := decodePart(data, "c")
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if got.Schema != record.Schema || len(got.Reasons) != 1 {
		t.Errorf("%+v", got.partHeader)
	}
	if _, err := decodePart(data, "d"); !errors.Is(err, errPart) {
		t.Errorf("the part of another campaign: %v", err)
	}
}

// TestDamagedPart changes and removes each byte of a part.
func TestDamagedPart(t *testing.T) {
	data, err := testPart(t).encode()
	must(t, err)
	for i := range data {
		data[i] ^= 0x10
		if _, err := decodePart(data, "c"); !errors.Is(err, errPart) {
			t.Errorf("byte %d changed: %v", i, err)
		}
		data[i] ^= 0x10
		if _, err := decodePart(data[:i], "c"); !errors.Is(err, errPart) {
			t.Errorf("%d bytes: %v", i, err)
		}
	}
}

func TestPartWithoutEntries(t *testing.T) {
	data, err := (&part{partHeader: partHeader{Campaign: "c", Seq: 7}}).encode()
	must(t, err)
	if got, err := decodePart(data, "c"); err != nil || got.Seq != 7 || len(got.entries) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestInvalidPart reads parts with a digest that matches, but with other entries than the header says.
func TestInvalidPart(t *testing.T) {
	const entry = "0123456789abcdef\x01"
	for _, c := range []struct{ content, want string }{
		{"", "unexpected end of JSON input"},
		{`{"schema":0,"campaign":"c"}` + "\n", "it has 0"},
		{`{"schema":99,"campaign":"c"}` + "\n", "it has 99"},
		{`{"schema":1,"campaign":"c","entries":-1}` + "\n", "-1 entries in 0 bytes"},
		{`{"schema":1,"campaign":"c","entries":2}` + "\n" + entry + "\x00\x00", "2 entries in 19 bytes"},
		{`{"schema":1,"campaign":"c","entries":2}` + "\n" + entry + strings.Repeat("\x80", 9) + "\x00" + strings.Repeat("\x80", 9) + "\x00x", "it ends in entry 1"},
		{`{"schema":1,"campaign":"c","entries":1}` + "\n" + entry + "\xff\xff", "entry 0 is invalid"},
		{`{"schema":1,"campaign":"c","entries":1}` + "\n" + entry + "\x00\xff", "entry 0 is invalid"},
		{`{"schema":1,"campaign":"c","entries":1}` + "\n" + entry + "\x00\x01", "entry 0 is invalid"},
		{`{"schema":1,"campaign":"c","entries":1}` + "\n" + entry[:16] + "\x04\x00\x00", "entry 0 is invalid"},
		{`{"schema":1,"campaign":"c"}` + "\n" + "x", "1 bytes follow the entries"},
	} {
		data := partMagic + c.content
		sum := sha256.Sum256([]byte(data))
		if _, err := decodePart(append([]byte(data), sum[:]...), "c"); !errors.Is(err, errPart) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %q", c.content, err, c.want)
		}
	}
}

package ledger

import (
	"crypto/sha256"
	"errors"
	"reflect"
	"testing"

	"ddiff/internal/fuzztest"
)

// FuzzPart: any bytes with a valid digest, which is no secret, are a part that is stored as it was read, or errPart.
func FuzzPart(f *testing.F) {
	p := &part{partHeader: partHeader{Campaign: "c", Stream: 5, Seq: 1 << 60}}
	p.entries = append(p.entries, []partEntry{{}, {state: Done}, {state: Failed, round: 300, reason: "no image"}}...)
	data, err := p.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data[len(partMagic) : len(data)-sha256.Size])
	f.Add([]byte(`{"schema":1,"campaign":"c","entries":1,"reasons":["x"]}` + "\n" + "0123456789abcdef\x02\x00\x01"))
	f.Add([]byte(`{"schema":1,"campaign":"c","entries":1}` + "\n" + "0123456789abcdef\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00")) // round 2⁶⁴−1
	f.Fuzz(func(t *testing.T, content []byte) {
		data := append([]byte(partMagic), content...)
		sum := sha256.Sum256(data)
		data = append(data, sum[:]...)
		var p *part
		var err error
		fuzztest.Limit(t, 1<<20+256*len(data), func() { p, err = decodePart(data, "c") })
		if err != nil {
			if !errors.Is(err, errPart) {
				t.Errorf("error %v, want errPart", err)
			}
			return
		}
		for _, e := range p.entries {
			if e.round < 0 {
				t.Errorf("round %d", e.round)
			}
		}
		stored, err := p.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := decodePart(stored, "c")
		if err != nil || !reflect.DeepEqual(again, p) {
			t.Errorf("%+v is read as %+v, %v", p, again, err)
		}
	})
}

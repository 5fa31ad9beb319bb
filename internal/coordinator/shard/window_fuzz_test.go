package shard

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"testing"

	"ddiff/internal/fuzztest"
	"ddiff/restore/item"
)

// zipped returns the stored form of the lines of a window.
func zipped(t testing.TB, lines []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err == nil {
		_, err = w.Write(lines)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// FuzzWindow: any lines are a window whose numbers are in range, from which a position follows, or an error.
func FuzzWindow(f *testing.F) {
	var lines []byte
	add := func(v any) {
		data, err := json.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		lines = append(append(lines, data...), '\n')
	}
	it := item.Item{ID: "a", Name: "r0", Campaign: "c", Image: &item.Source{Path: "/a.png"}, Solver: []byte(`{"steps":3}`)}
	add(Header{Schema: 1, Campaign: "c", Rows: 2, Items: 2, Failures: 1, Listed: 2, Last: true})
	add(it)
	it.Index, it.Name = 1, "r1"
	add(item.Result{Schema: 1, Item: it, Outcome: item.OutcomeFailed, Reason: "no image"})
	f.Add(lines)
	f.Add([]byte(`{"schema":1,"campaign":"c"}`))
	f.Add([]byte(`{"schema":1,"campaign":"c","number":-9,"row":-1,"rows":-1,"item":-1}`))
	f.Add(append([]byte(`{"schema":1,"campaign":"c","items":1000}`), bytes.Repeat([]byte("\n{}"), 1000)...))
	f.Add([]byte(`{"schema":1,"campaign":"c","items":1}` + "\n" + `{"index":9}`))
	f.Fuzz(func(t *testing.T, lines []byte) {
		data := zipped(t, lines)
		var w *Window
		var err error
		fuzztest.Limit(t, 1<<20+4096*len(lines), func() { w, err = Decode(data) })
		if err != nil {
			return
		}
		p := w.Next(Position{})
		if p.Number < 1 || p.Row < 0 || p.Item < 0 || p.Listed < 0 || w.Rows < 0 {
			t.Errorf("%+v is followed by %+v", w.Header, p)
		}
		stored, err := w.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(stored)
		if err != nil {
			t.Fatal(err)
		}
		if twice, err := again.Encode(); err != nil || !bytes.Equal(stored, twice) {
			t.Errorf("%+v is read as %+v, %v", w, again, err)
		}
	})
}

package main_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// badLists are lists whose header or only row is wrong.
func badLists(t *testing.T) []badInput {
	t.Helper()
	var all []badInput
	files := func(name, text string) map[string][]byte {
		return map[string][]byte{name: []byte(text), "a.png": grey(16), "b/a.png": []byte("x")}
	}
	row := func(list, text string, parts ...string) {
		all = append(all, failing(fmt.Sprintf("row/%s %.60q", list, text), files(list, text), parts, "--images", list, "--task", "hdr"))
	}
	whole := func(list, text string, parts ...string) {
		all = append(all, refused(fmt.Sprintf("list/%s %.60q", list, text), files(list, text), 2, append([]string{"ddiff: ", list}, parts...), "--images", list, "--task", "hdr"))
	}
	digest := strings.Repeat("0", 64)
	for column, values := range map[string][]string{
		"sigma": {"x", "NaN", "Inf", "-1", "1.5", "1e999", "0,1"}, "seed": {"x", "-1", "1.5", "99999999999999999999"}, "width": {"0", "-1", "x", "1.5", "99999999"},
		"height": {"0", "x"}, "sha256": {"x", digest}, "task": {"x", "HDR", "super resolution"}, "param.scale": {"x", "-1", "NaN"}, "param.scle": {"2"},
		"mask": {"nowhere.png", "b", "b/a.png"}, "kernel": {"nowhere.png"}, "measurement": {"nowhere.npy", "b", "b/a.png"},
	} {
		for _, value := range values {
			row("l.csv", "image,"+column+"\na.png,\""+value+"\"\n")
			row("l.jsonl", fmt.Sprintf(`{"image": "a.png", %q: %q}`, column, value)+"\n")
		}
	}
	for _, path := range []string{"nowhere.png", "b", "b/a.png", "/nowhere/a.png", "https://127.0.0.1/a.png", "ftp://h/a.png", "s3://b/a.png", "a\x1b[2Jb.png", "a\u202eb.png", "l.txt"} {
		row("l.csv", "image\n"+path+"\n")
		row("l.txt", path+"\n")
	}
	for _, text := range []string{`{"image": 7}`, `{"image": null}`, `{"image": ["a.png"]}`, `{"image": {"path": "a.png"}}`, `{"image": "a.png"`, `["a.png"]`, `"a.png"`, `{}`, `7`, `null`, `{"image": "a.png"} x`,
		`{"image": "a.png", "image": "b"}`, `{'image': 'a.png'}`, `{"image": "a.png", "x": 1}`, `{"image": ""}`, "{\"image\": \"\xff\"}", strings.Repeat("[", 20_000), "\x1b[2J", "\x00"} {
		row("l.jsonl", text+"\n")
	}
	for _, text := range []string{"image,name\na.png\n", "image\na.png,b\n", "image\n\"a.png\n", "image\na\"b.png\n", "image,name\n,x\n", "image\n\x00\n"} {
		row("l.csv", text)
	}
	for _, text := range []string{"", "\n\n", "image\n", "picture\na.png\n", "image,image\na.png,a.png\n", "image,param.\na.png,1\n", "\"image\na.png\n", "name\nx\n", "a\x1b[2Jb\nx\n", "a\u202eb\nx\n",
		strings.Repeat("x", 900_000) + "\n1\n", strings.Repeat("y", 2<<20), "image\n" + strings.Repeat("x", 2<<20) + "\n", strings.Repeat("x,", 10_000) + "\n"} {
		whole("l.csv", text)
	}
	for _, text := range []string{"", "\n", "# nothing\n", strings.Repeat("x", 2<<20)} {
		whole("l.txt", text)
	}
	for _, text := range []string{"", "\n", "{" + strings.Repeat(" ", 2<<20) + "}"} {
		whole("l.jsonl", text)
	}
	return all
}

// photoRow is a row of a Parquet file with an image.
type photoRow struct {
	Image struct {
		Bytes []byte `parquet:"bytes"`
		Path  string `parquet:"path"`
	} `parquet:"image"`
}

// badArchives are archives that are cut or changed.
func badArchives(t *testing.T) []badInput {
	t.Helper()
	var all []badInput
	add := func(name, file string, data []byte, parts ...string) {
		all = append(all, refused("archive/"+name, map[string][]byte{file: data}, 2, append([]string{"ddiff: ", file}, parts...), "--images", file, "--task", "hdr"))
	}
	rows := make([]photoRow, 3)
	for i := range rows {
		rows[i].Image.Bytes, rows[i].Image.Path = grey(16), fmt.Sprintf("%d.png", i)
	}
	var buf bytes.Buffer
	must(t, parquet.Write(&buf, rows))
	data := buf.Bytes()
	for i := range 20 {
		n := (len(data) - 1) * i / 19
		add(fmt.Sprintf("Parquet cut at %d", n), "a.parquet", data[:n])
	}
	draw := rand.New(rand.NewPCG(5, 6))
	footer := int(data[len(data)-8]) | int(data[len(data)-7])<<8
	for _, at := range []int{len(data) - 1, len(data) - 4, len(data) - 5, len(data) - 6} {
		changed := bytes.Clone(data)
		changed[at] ^= 0x7f
		add(fmt.Sprintf("Parquet changed at %d from the end", len(data)-at), "a.parquet", changed)
	}
	for i := range 10 {
		changed := bytes.Clone(data)
		for at := len(data) - 8 - footer; at < len(data)-8; at++ {
			changed[at] = byte(draw.Uint32())
		}
		add(fmt.Sprintf("Parquet with random footer %d", i), "a.parquet", changed)
	}
	for _, text := range []string{"text", "PAR1", "PAR1PAR1", "PAR1\xff\xff\xff\x7fPAR1", "PARE\x00\x00\x00\x00PARE", strings.Repeat("\x00", 4096)} {
		add(fmt.Sprintf("Parquet %.12q", text), "a.parquet", []byte(text))
		add(fmt.Sprintf("tar %.12q", text), "a.tar", []byte(text))
	}
	for name, metadata := range map[string]string{
		"of 2^31 columns": "\x29\xfc\xff\xff\xff\xff\x07", "of 2^31 row groups": "\x49\xfc\xff\xff\xff\xff\x07",
		"of nested structures": strings.Repeat("\x1c", 8<<20), "of nested lists": strings.Repeat("\x19\x1c", 4<<20),
	} {
		file := binary.LittleEndian.AppendUint32([]byte("PAR1"+metadata), uint32(len(metadata)))
		add("Parquet "+name, "a.parquet", append(file, "PAR1"...))
	}
	return all
}

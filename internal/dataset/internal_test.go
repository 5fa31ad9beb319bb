package dataset

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// An address round-trips through its text and never contains credentials.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"/photos/cat.png", "file:///photos/a%20b.png", "s3://bucket/photos/cat.png?endpoint=https://s3.example",
		"https://example.org/a%2Fb.png?x=1", "tar+s3://b/x.tar#name=cat.png&offset=512&size=1234",
		"tar+file:///x%23.tar#offset=0&size=0", "parquet+https://h/x.parquet#column=image.bytes&name=c&row=7",
		"https://u:p@h/x", "s3:b", "tar+https://h/#offset=9223372036854775807&size=1", "https://h/x#y", "file:///os/a%90", "https://h/\x7f",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := Parse(text)
		if err != nil {
			if !errors.Is(err, ErrAddress) || strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		again, err := Parse(a.String())
		if err != nil && len(a.String()) <= MaxAddressBytes {
			t.Fatalf("%q formats as %q: %v", text, a.String(), err)
		}
		if err == nil && again.String() != a.String() {
			t.Errorf("%q formats as %q, then %q", text, a.String(), again.String())
		}
		if a.offset < 0 || a.size < 0 || a.row < 0 || a.offset+a.size < 0 {
			t.Errorf("%q: offset %d, size %d, row %d", text, a.offset, a.size, a.row)
		}
		if a.url != nil && a.url.User != nil {
			t.Errorf("%q contains credentials", text)
		}
		_, _ = a.Public(), a.base()
		kindOf(a)
	})
}

// All members are inside of the file, and an index in pieces has the same members.
func FuzzTar(f *testing.F) {
	f.Add(make([]byte, 1024))
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, name := range []string{"a.png", "a.json", strings.Repeat("long/", 60) + "b.png"} {
		must(f, w.WriteHeader(&tar.Header{Name: name, Size: 5, Mode: 0o644}))
		if _, err := w.Write([]byte("bytes")); err != nil {
			f.Fatal(err)
		}
	}
	must(f, w.Close())
	f.Add(buf.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		r := io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data)))
		complete, err := indexTar(r, 0, indexMembers)
		if err != nil && !errors.Is(err, ErrBadArchive) {
			t.Errorf("error without ErrBadArchive: %v", err)
		}
		for _, m := range complete.Members {
			if m.Offset < 0 || m.Size < 0 || m.Offset > r.Size()-m.Size || m.Name == "" {
				t.Errorf("%+v is outside of the file", m)
			}
		}
		if err != nil {
			return
		}
		var pieces []tarMember
		for start := int64(0); ; {
			x, err := indexTar(r, start, 1)
			if err != nil {
				t.Fatalf("piece fails, complete index does not: %v", err)
			}
			pieces = append(pieces, x.Members...)
			if x.Next == 0 {
				break
			}
			if x.Next <= start {
				t.Fatalf("piece at %d continues at %d", start, x.Next)
			}
			start = x.Next
		}
		if len(pieces) != len(complete.Members) {
			t.Errorf("%d members in pieces, %d in one index", len(pieces), len(complete.Members))
		}
	})
}

// A page that decompresses to more than its claimed size is refused before it is decoded.
func TestCheckDecompressed(t *testing.T) {
	t.Parallel()
	zeros := make([]byte, 4<<20)
	for _, codec := range []compress.Codec{&parquet.Snappy, &parquet.Gzip, &parquet.Zstd} {
		data, err := codec.Encode(nil, zeros)
		must(t, err)
		if err := checkDecompressed(data, int64(len(zeros)), codec.CompressionCodec()); err != nil {
			t.Errorf("%s: %v", codec, err)
		}
		for _, size := range []int64{int64(len(zeros)) - 1, 1000} {
			if err := checkDecompressed(data, size, codec.CompressionCodec()); !errors.Is(err, ErrBadArchive) || !strings.Contains(err.Error(), "decompresses to more") {
				t.Errorf("%s: claims %d bytes: %v", codec, size, err)
			}
		}
		if err := checkDecompressed([]byte("\xff\xff\xff\xff\xff\xff\xff"), 1000, codec.CompressionCodec()); !errors.Is(err, ErrBadArchive) {
			t.Errorf("%s: invalid bytes: %v", codec, err)
		}
	}
}

func TestGuard(t *testing.T) {
	t.Parallel()
	g := guard{networks: []netip.Prefix{netip.MustParsePrefix("10.7.0.0/16")}}
	for text, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true, "10.7.1.1": true, "::ffff:10.7.1.1": true,
		"10.8.1.1": false, "127.0.0.1": false, "::1": false, "0.0.0.0": false, "::": false, "192.168.1.1": false, "172.16.0.1": false,
		"169.254.169.254": false, "fe80::1": false, "fe80::1%eth0": false, "fd00:ec2::254": false, "100.100.100.200": false,
		"224.0.0.1": false, "ff02::1": false, "255.255.255.255": false, "64:ff9b::a9fe:a9fe": false, "2002:7f00:1::": false,
		"2001:0:1::1": false, "::ffff:127.0.0.1": false, "192.0.0.192": false, "198.18.0.1": false,
	} {
		if err := g.checkIP(netip.MustParseAddr(text)); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	hosts := guard{hosts: []string{"Example.org", "*.example.net"}}
	for name, want := range map[string]bool{
		"example.org": true, "EXAMPLE.ORG.": true, "a.example.org": false, "a.example.net": true, "a.b.example.net": true,
		"example.net": false, "badexample.net": false, "example.org.evil": false, "": false,
	} {
		if hosts.allowsHost(name) != want {
			t.Errorf("host %q: %v", name, !want)
		}
	}
}

// TestParametersOfBuckets: a bucket in a list of a bucket has the parameters of the list's bucket; a list on a web server has none
// for it.
func TestParametersOfBuckets(t *testing.T) {
	t.Parallel()
	s, err := New(Config{CacheDir: t.TempDir()})
	must(t, err)
	defer s.Close()
	r := &reading{Sources: s}
	for list, want := range map[string]string{
		"s3://b/list.csv?endpoint=https://s3.example": "s3://c/a.png?endpoint=https://s3.example",
		"s3://b/list.csv":              "s3://c/a.png",
		"https://example.org/list?x=1": "s3://c/a.png",
	} {
		a, err := Parse(list)
		must(t, err)
		if place, err := r.locate(a, "s3://c/a.png"); place.Address != want {
			t.Errorf("in %s: %q, %v, want %q", list, place.Address, err, want)
		}
	}
}

package raster

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	maxNPYHeader = 10_000 // bytes, NumPy's own limit
	maxRank      = 32     // dimensions
)

// npyHeader is the dictionary at the start of a .npy file.
type npyHeader struct {
	descr   string // type of the values, such as "<f4"
	fortran bool
	shape   []int
}

// parseNPYHeader parses a Python dictionary with exactly the keys descr, fortran_order and shape, in any order.
func parseNPYHeader(text string) (npyHeader, error) {
	p := npyParser{rest: text}
	var h npyHeader
	seen := map[string]bool{}
	p.expect("{")
	for p.err == nil && !p.accept("}") {
		key := p.quoted()
		p.expect(":")
		if p.err == nil && seen[key] {
			p.fail("key %q occurs twice", key)
		}
		seen[key] = true
		switch key {
		case "descr":
			h.descr = p.quoted()
		case "fortran_order":
			h.fortran = p.boolean()
		case "shape":
			h.shape = p.tuple()
		default:
			p.fail("unknown key %q", key)
		}
		if !p.accept(",") {
			p.expect("}")
			break
		}
	}
	if p.err == nil && strings.TrimSpace(p.rest) != "" {
		p.fail("text after the dictionary")
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if p.err == nil && !seen[key] {
			p.fail("key %q is missing", key)
		}
	}
	return h, p.err
}

// npyParser reads tokens from the front of rest. After the first error, which it stores, it reads nothing.
type npyParser struct {
	rest string
	err  error
}

func (p *npyParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrFormat)
	}
}

// accept skips space, and token if it follows.
func (p *npyParser) accept(token string) bool {
	if p.err != nil {
		return false
	}
	p.rest = strings.TrimLeft(p.rest, " \t\n")
	rest, ok := strings.CutPrefix(p.rest, token)
	p.rest = rest
	return ok
}

func (p *npyParser) expect(token string) {
	if !p.accept(token) {
		p.fail("want %q at %q", token, p.next())
	}
}

// next returns the beginning of the remaining text, for messages.
func (p *npyParser) next() string { return p.rest[:min(len(p.rest), 12)] }

// quoted reads a string in single or double quotes, without escapes.
func (p *npyParser) quoted() string {
	for _, quote := range []string{"'", `"`} {
		if !p.accept(quote) {
			continue
		}
		text, rest, ok := strings.Cut(p.rest, quote)
		if !ok {
			p.fail("string without an end at %q", p.next())
			return ""
		}
		p.rest = rest
		return text
	}
	p.fail("want a string at %q", p.next())
	return ""
}

func (p *npyParser) boolean() bool {
	if p.accept("True") {
		return true
	}
	p.expect("False")
	return false
}

// tuple reads lengths in parentheses.
func (p *npyParser) tuple() []int {
	shape := []int{}
	p.expect("(")
	for p.err == nil && !p.accept(")") {
		digits := len(p.rest) - len(strings.TrimLeft(p.rest, "0123456789"))
		n, err := strconv.Atoi(p.rest[:digits])
		if err != nil {
			p.fail("want a length at %q", p.next())
			return nil
		}
		p.rest = p.rest[digits:]
		shape = append(shape, n)
		if len(shape) > maxRank {
			p.fail("more than %d dimensions", maxRank)
		}
		if !p.accept(",") {
			p.expect(")")
			break
		}
	}
	return shape
}

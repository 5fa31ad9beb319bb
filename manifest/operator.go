package manifest

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"ddiff/restore/item"
)

// Operators returns the paths of the operator files, each once, in the order of the tasks.
func (s *Spec) Operators() []string {
	var out []string
	for _, t := range s.Tasks {
		if t.Operator != "" && !slices.Contains(out, t.Operator) {
			out = append(out, t.Operator)
		}
	}
	return out
}

// longestOperatorName bounds the names of operators, which are part of file names and subjects of the queue.
const longestOperatorName = 40

// operatorName matches the names of operators.
var operatorName = regexp.MustCompile(fmt.Sprintf(`^[a-z0-9][a-z0-9_-]{0,%d}$`, longestOperatorName-1))

// OperatorName returns the default name of an operator file: the name of the file without its extension, in lower case,
// with _ in place of other characters, as in my_blur for /data/My Blur.onnx.
func OperatorName(file string) string {
	file, _, _ = strings.Cut(file, "?")
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, strings.ToLower(stem(path.Base(file))))
	name = strings.Trim(name[:min(len(name), longestOperatorName)], "_-")
	if name == "" {
		return "operator"
	}
	return name
}

// operator checks the name of a task with an operator file, which must not be a built-in task and belong to one file, and reports whether it is valid.
func (c *checker) operator(field string, t item.Task) bool {
	before := len(c.problems)
	switch {
	case !operatorName.MatchString(t.Name):
		c.add(field+".name", fmt.Errorf("%q is not 1 to %d characters of a-z, 0-9, _ and -", clip(t.Name), longestOperatorName))
	case c.isBuiltIn(t.Name):
		c.add(field, fmt.Errorf("has an operator file and the name of the built-in task %s; remove operator, or give another name", t.Name))
	case slices.ContainsFunc(c.spec.Tasks, func(other item.Task) bool { return other.Name == t.Name && other.Operator != t.Operator }):
		c.add(field, fmt.Errorf("the name %s belongs to two operator files; give each its own name", t.Name))
	}
	return len(c.problems) == before
}

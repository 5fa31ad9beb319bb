package gc

import (
	"regexp"
	"strings"
	"sync"

	"ddiff/internal/report"
	"ddiff/internal/report/figure"
)

// outputKeys matches the objects of an output beside the items.
var outputKeys = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(checkpoints/[0-9a-f]{64}(\.[^/]*)?|probes/[A-Z2-7]+|failures/[a-z0-9-]+/([0-9]+\.jsonl|left_out\.json)` +
		`|logs/[a-z0-9-]+/[0-9a-f]{64}\.[^/]+\.json|scores/[^/]+/[0-9a-f]+\.jsonl|tuning/[0-9a-f]+\.json` +
		`|sheets/[^/]+\.png|sheets/runs/[0-9a-f]{64}/[^/]+\.png|figures/((` + alternatives(figure.Kinds()...) + `)[^/]*\.(svg|csv)|` +
		regexp.QuoteMeta(report.KeyCaptions) + `)|` + alternatives(report.Keys()...) + `)$`)
})

// IsOutputKey reports whether a key in an output has the form of the files that campaigns, ddiff score and ddiff tune write beside the items.
// Other files of these folders, such as those of another output inside, are not deleted or copied.
func IsOutputKey(key string) bool { return outputKeys().MatchString(key) }

// isOutputKey is IsOutputKey for a key that begins with the output.
func isOutputKey(output, key string) bool {
	return IsOutputKey(strings.TrimPrefix(key, outputKey(output, "")))
}

// alternatives is a pattern of some texts.
func alternatives(texts ...string) string {
	for i := range texts {
		texts[i] = regexp.QuoteMeta(texts[i])
	}
	return strings.Join(texts, "|")
}

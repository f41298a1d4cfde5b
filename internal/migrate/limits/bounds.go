package limits

import (
	"fmt"

	"cellserver/internal/decide/namedlimit"
)

// maxPatternBytes bounds a pattern of a file of limits.
const maxPatternBytes = 1024

// checkBounds refuses what a file of limits has no room for. Its overrides of exact keys are at most as many
// as descriptors.
func (t *translator) checkBounds() {
	for i, l := range t.limits {
		if i == namedlimit.MaxNames {
			t.fail(l.at, fmt.Sprintf("with this descriptor there are more than %d limits, the most of a file; translate fewer domains at once", i))
			return
		}
		patterns := 0
		for _, o := range l.overrides {
			if len(o.keys) == 0 {
				patterns++
			}
			if len(o.pattern) > maxPatternBytes {
				t.fail(l.at, fmt.Sprintf("a value below this descriptor needs a pattern of %d bytes, and a limit has at most %d; shorten it", len(o.pattern), maxPatternBytes))
			}
		}
		if patterns > namedlimit.MaxPatterns {
			t.fail(l.at, fmt.Sprintf("values with * below this descriptor need %d patterns, and a limit has at most %d; list fewer", patterns, namedlimit.MaxPatterns))
		}
	}
}

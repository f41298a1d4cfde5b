package envoyconfig

import (
	"bufio"
	"io"
	"strconv"
	"strings"
)

// Dump writes a line a limit, as envoyproxy/ratelimit does at /rlconfig. It has them in the order of the
// configuration, which is none there. Nil rules have no lines.
func Dump(w io.Writer, r *Rules) error {
	if r == nil {
		return nil
	}
	to := bufio.NewWriter(w)
	for i := range r.limits {
		l := &r.limits[i]
		unit := strings.ToUpper(l.Rate.Unit)
		if l.Rate.Unlimited {
			unit = "UNKNOWN"
		}
		_, _ = to.WriteString(l.FullPath() + ": unit=" + unit + " requests_per_unit=" + strconv.FormatUint(uint64(l.Rate.Count), 10) +
			", shadow_mode: " + strconv.FormatBool(l.Shadow) + ", quota_mode: " + strconv.FormatBool(l.Quota) + "\n")
	}
	return to.Flush() // with the first error
}

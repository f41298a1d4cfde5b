package transfer

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// Counts is what has become of keys.
type Counts struct {
	Seen    int64            `json:"seen"`
	Written int64            `json:"written"`
	Kept    int64            `json:"kept"`    // the target's, whose state was the same or later
	Expired int64            `json:"expired"` // before they could be written
	Others  map[string]int64 `json:"others"`  // that no limiter has made, by how that was seen
	Refused map[string]int64 `json:"refused"` // by the target, by its error
}

// maxReasons bounds what a strange server can make of Counts.
const maxReasons = 20

func count(in *map[string]int64, reason string) {
	if *in == nil {
		*in = map[string]int64{}
	}
	if _, ok := (*in)[reason]; !ok && len(*in) >= maxReasons {
		reason = "other reasons"
	}
	(*in)[reason]++
}

// Print writes the counts, one a line.
func (c *Counts) Print(w io.Writer, written string) error {
	_, err := fmt.Fprintf(w, "%-11s %d\n%-11s %d\n", "keys", c.Seen, written, c.Written)
	if err == nil && c.Kept > 0 {
		_, err = fmt.Fprintf(w, "%-11s %d: the target's state is the same or later\n", "left", c.Kept)
	}
	if err == nil && c.Expired > 0 {
		_, err = fmt.Fprintf(w, "%-11s %d\n", "expired", c.Expired)
	}
	for _, by := range []struct {
		what   string
		counts map[string]int64
	}{{"passed over", c.Others}, {"refused", c.Refused}} {
		for _, reason := range slices.Sorted(maps.Keys(by.counts)) {
			if err == nil {
				_, err = fmt.Fprintf(w, "%-11s %d: %s\n", by.what, by.counts[reason], reason)
			}
		}
	}
	return err
}

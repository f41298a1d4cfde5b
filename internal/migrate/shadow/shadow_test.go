package shadow

import (
	"strings"
	"testing"
)

func TestNothing(t *testing.T) {
	for _, tt := range []struct {
		summary Summary
		want    string
	}{
		{Summary{Calls: 2, Compared: 1, Unknown: 1}, ""},
		{Summary{}, "no CL.THROTTLE was seen; "},
		{Summary{OtherKinds: 3}, "only calls of limiters that redis-cell does not have were seen; "},
		{Summary{Calls: 3, Missed: 3}, "no key was read before the end; "},
		{Summary{Calls: 3, Reads: 2, Unread: 2}, "the keys that were called hold no TAT of redis-cell; "},
		{Summary{Calls: 3, Reads: 3, Unknown: 3}, "no key was called again after its first call, "},
		{Summary{Calls: 3, Reads: 3, Unknown: 2, Missed: 1}, "no key was called again after its first call, "},
	} {
		if got := tt.summary.Nothing(); !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%+v: got %q, want %q", tt.summary, got, tt.want)
		}
	}
}

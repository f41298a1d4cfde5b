package remotetest

import (
	"fmt"
	"strings"
)

// LeastShare is the required share of an ideal limiter's allowed calls.
const LeastShare = 0.98

// Verdict is the judgment of a load's keys.
type Verdict struct {
	Allowed, Ideal int64
	// Fullest is the largest share of a window's permitted calls.
	Fullest float64
	Broken  []string // a line for each key with too many allowed calls
}

// Judge judges some keys.
func (l *Load) Judge(r *Record, keys ...int) (v Verdict) {
	for _, key := range keys {
		limit := l.Limit(key)
		v.Allowed += Count(r.Calls[key], Allowed)
		v.Ideal += limit.Ideal(r.Calls[key])
		w := limit.Worst(r.Calls[key])
		if w.Most == 0 {
			continue
		}
		v.Fullest = max(v.Fullest, float64(w.Allowed)/float64(w.Most))
		if w.Allowed > w.Most {
			v.Broken = append(v.Broken, fmt.Sprintf("%q: %d calls were allowed from %s to %s, at most %d may be",
				l.Keys[key], w.Allowed, w.From, w.To, w.Most))
		}
	}
	return v
}

// Share returns the allowed calls relative to an ideal limiter's.
func (v Verdict) Share() float64 {
	if v.Ideal == 0 {
		return 1
	}
	return float64(v.Allowed) / float64(v.Ideal)
}

func (v Verdict) String() string {
	return fmt.Sprintf("allowed %d, %.4f of an ideal limiter's; the fullest window has %.4f of what it may have; %d keys broken",
		v.Allowed, v.Share(), v.Fullest, len(v.Broken))
}

// Wrong returns a line for each fault.
func (v Verdict) Wrong() []string {
	const most = 10
	wrong := v.Broken
	if len(wrong) > most {
		wrong = append(wrong[:most:most], fmt.Sprintf("and %d more keys", len(v.Broken)-most))
	}
	if v.Share() < LeastShare {
		wrong = append(wrong, fmt.Sprintf("%d calls were allowed of %d that may be, %.4f; want %.2f", v.Allowed, v.Ideal, v.Share(), LeastShare))
	}
	return wrong
}

// ErrorsText lists error replies with their counts.
func (r *Record) ErrorsText() string {
	var b strings.Builder
	for text, n := range r.Errors {
		fmt.Fprintf(&b, "%d times %q\n", n, text)
	}
	return b.String()
}

package limiter

import (
	"math"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/limiter/window"
)

func (r *Rule) calendar() *calendar.Calendar {
	c, _ := r.Shared.(*calendar.Calendar)
	return c
}

type quotas struct{ windows }

func (quotas) row() Row {
	return Row{
		Name: "cl-quota", Type: "cl-quota", Encoding: "counter",
		Command: "cl.quota", arguments: [MaxArguments]string{"max_count"}, Quantity: "quantity", CountsDenied: true, Debits: true,
		Unit: funnel.WholeSeconds, Calendar: true,
	}
}

func (quotas) build(s Spec) (Packed, error) {
	if s.Calendar == nil {
		return Packed{}, ErrWrongType
	}
	l, err := window.NewCount(s.Numbers[0])
	return l.Packed(), err
}

func (quotas) numbers(r Rule) Numbers { return Numbers{r.window().MaxCount()} }

func (quotas) left(payload []byte) int64 { return math.MaxInt64 - window.Count(payload) }

func (quotas) valid(s State) bool { return window.ValidFixed(s.Payload) }

func (quotas) endNs(s State, _ int64) int64 { return s.ExpiresNs }

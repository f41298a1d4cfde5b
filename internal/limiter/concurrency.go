package limiter

import "cellserver/internal/limiter/lease"

// leases is Concurrency. Operations request its places.
type leases struct{ defaults }

func (leases) row() Row {
	return Row{Name: "cl-concurrency", Type: "cl-concurrency", Encoding: "leases", Command: "cl.concurrency", Sub: "acquire"}
}

func (leases) valid(s State) bool { return lease.Valid(s.Payload, s.ExpiresNs) }

func (leases) shift(payload []byte, byNs int64) { lease.Shift(payload, byNs) }

func (leases) stamp(to *stamping) {
	lease.Written(to.course.payloadBefore(Concurrency), to.state.Payload, func(at int, endNs int64) {
		to.follow(at, endNs, 0)
	})
}

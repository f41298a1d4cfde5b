package engine

import "cellserver/internal/keep/remote/script"

// natives decides requests of fixed windows and buckets: a script does their arithmetic and returns the earlier value, from which the
// answers follow. Swaps do the rest.
type natives struct{ *Engine }

func (w *natives) begin(q *queue, _ *Job) { q.hasValue() }

func (w *natives) takes(q *queue, j *Job) bool {
	if j.Request == nil || j.Request.Rule.Kind != q.taken.first.Request.Rule.Kind {
		return false
	}
	return w.sameTime(q, j) && q.count < maxSwapped && script.IsNative(j.Request)
}

func (w *natives) add(*pipeline, *queue, *Job) bool { return true }

func (w *natives) call(_ *pipeline, q *queue) bool {
	first := q.taken.first
	args, run := w.Scripts.NativeArgs(first.Request.Rule.Kind, first.NowNs), int64(0)
	for j := first; j != nil; j = j.next {
		if run++; j.next == nil || !sameRequest(j, j.next) {
			args, run = script.AppendNativeRun(args, run, j.Request), 0
		}
	}
	q.call.Script, q.call.Args = w.Scripts.Native, args
	return true
}

func sameRequest(a, b *Job) bool {
	return a.Request.Quantity == b.Request.Quantity && a.Request.Rule == b.Request.Rule
}

func (w *natives) writes(*queue) bool { return true }

func (w *natives) reply(p *pipeline, q *queue) error {
	rest, r, err := read(p, q)
	if err != nil {
		return err
	}
	v := q.value
	if len(rest) == 0 {
		q.inVain()
		q.bySwap, v.last = true, reading{}
		return nil
	}
	r.Found = script.FoundIn(rest[0])
	v.last = r
	if w.decideAt(q, q.count, r.serverNs, nil) {
		v.last.State = v.next
		v.last.Absent = v.next.ExpiresNs <= r.serverNs
		if v.last.Value = ""; !v.last.Absent {
			v.last.Value = script.ValueOf(&v.next)
		}
	}
	w.answer(q, false)
	return nil
}

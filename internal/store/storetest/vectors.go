package storetest

import (
	"cellserver/internal/funnel"
	"cellserver/internal/funnel/vectors"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

func vectorChecks() []check {
	var all []check
	for _, file := range []string{vectors.WholeMicroseconds, vectors.AnyNanosecond} {
		all = append(all,
			check{"vectors one by one: " + file, func(t reporter, s store.Store) { checkVectors(t, s, file, 1) }},
			check{"vectors in batches: " + file, func(t reporter, s store.Store) { checkVectors(t, s, file, 1000) }})
	}
	return all
}

// checkVectors decides a file's rows, those of one time in batches of up to maxBatch.
func checkVectors(t reporter, s store.Store, file string, maxBatch int) {
	rows, err := vectors.Read(file)
	if err != nil {
		t.Fatalf("%v", err)
	}
	var batch []store.Request
	for done := 0; done < len(rows); done += len(batch) {
		nowNs := rows[done].AtNs
		batch = batch[:0]
		for _, row := range rows[done:] {
			if row.AtNs != nowNs || len(batch) == maxBatch {
				break
			}
			l := limit(row.MaxBurst, row.Count, row.PeriodSec)
			batch = append(batch, store.Request{Key: key(0, row.Key), Rule: limiter.OfFunnel(l), Quantity: row.Quantity})
		}
		for i, q := range decide(t, s, nowNs, batch) {
			row := rows[done+i]
			want := funnel.Result{
				Limited: row.Limited, Limit: row.Limit, Remaining: row.Remaining,
				RetryAfter: row.RetryAfter, ResetAfter: row.ResetAfter,
			}
			if q.Result != want {
				t.Fatalf("line %d: %+v: got %+v", done+i+2, row, q.Result)
			}
		}
	}
}

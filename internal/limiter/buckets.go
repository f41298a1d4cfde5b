package limiter

import "cellserver/internal/limiter/bucket"

// OfBucket returns the rule of CL.BUCKET TAKE.
func OfBucket(l bucket.Limit) Rule { return Rule{Kind: Bucket, Packed: l.Packed()} }

func (r *Rule) bucket() bucket.Limit { return bucket.Unpack(r.Packed) }

type buckets struct{ defaults }

func (buckets) row() Row {
	return Row{
		Name: "cl-bucket", Type: "cl-bucket", Encoding: "level",
		Command: "cl.bucket", Sub: "take", arguments: [MaxArguments]string{"capacity"}, Quantity: "n",
		Short: "bucket", Endless: true,
	}
}

func (buckets) build(s Spec) (Packed, error) {
	l, err := bucket.NewLimit(s.Numbers[0])
	return l.Packed(), err
}

func (buckets) numbers(r Rule) Numbers { return Numbers{r.bucket().Capacity()} }

func (buckets) share(r Rule, share float64) Rule {
	r.Packed = r.bucket().Share(share).Packed()
	return r
}

func (buckets) makesKey(_ Rule, quantity int64) bool { return quantity < 0 }

func (buckets) full(r Rule, nowNs int64) State {
	s := State{Kind: Bucket}
	s.Payload, s.ExpiresNs = r.bucket().Fill(nil, nowNs)
	return s
}

func (buckets) left(payload []byte) int64 { return bucket.Level(payload) }

func (buckets) valid(s State) bool { return bucket.Valid(s.Payload) }

package execute

// MaxScratchNameBytes is how large the buffer of joined names is kept.
const MaxScratchNameBytes = maxScratchNameBytes

// JoinedBytes is how large that is now.
func (c Call) JoinedBytes() int { return cap(c.x.Scratch.joined) }

package commands_test

// Bounds as clients feel them:
const (
	feedBytes          = 64 << 10 // of replies, after which a Feed ends
	maxNames           = 128      // of one COMMAND or CONFIG GET
	maxClientText      = 1 << 10
	maxWatched         = 10_000
	queuedArgBytes     = 24 // that an argument behind MULTI costs beside its bytes
	longExec           = 1000
	backgroundKeys     = 1000
	optimisticAttempts = 3
	maxInnerLineBytes  = 1 << 20
	maxLineArgBytes    = 8 << 10
	maxLineArgs        = 1 << 10
)

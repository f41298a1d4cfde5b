package bound

// What tables and closures take, somewhat generously: gopher-lua's maps, and growth by doubling.
const (
	TableBytes    = 256 // of an empty one
	ElementBytes  = 32  // of a table's array
	FieldBytes    = 192 // of a table's hash part
	ClosureBytes  = 256
	ArgumentBytes = 16 // of a value on the stack
)

// MaxResults is how many results a function may have, about Redis's 8,000 less what its stack holds.
const MaxResults = 7900

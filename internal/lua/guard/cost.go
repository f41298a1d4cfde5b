package guard

// Costs of tables and closures in gopher-lua, generously, with growth by doubling.
const (
	TableBytes    = 256 // of an empty one
	ElementBytes  = 32  // of a table's array
	FieldBytes    = 192 // of a table's hash part
	ClosureBytes  = 256
	ArgumentBytes = 16 // of a value on the stack
)

// MaxResults is how many arguments and results together a function may have, as in Redis.
const MaxResults = 8000

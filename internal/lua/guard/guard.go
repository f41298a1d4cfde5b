package guard

import "strconv"

// A Guard is a native function that stands for an instruction of the virtual machine that allocates, and accounts for
// what it does. Its name is no name in Lua: a script cannot reach or replace it.
type Guard int

// The guards, with their arguments and what they return.
const (
	GuardConcat  Guard = iota // (a, b, ...): a .. b .. ...
	GuardSet                  // (object, key, value): object[key] = value
	GuardNew                  // (): {}
	GuardTable                // (hash fields, table, pairs, next index, key, value, ..., element, ...): the table, with the rest set
	GuardClosure              // (function): the function
	GuardVararg               // (...): ...
	GuardNumber               // (bound of a loop): the number that a string spells, or the value
	GuardNone                 // (): nothing; the main chunk's ..., which holds the guards themselves
	Guards                    // how many there are
)

func (g Guard) name() string { return "(" + strconv.Itoa(int(g)) + ")" }

package store

// Abilities are what not every store can do. Who needs one asks for it, and not for the kind of store.
type Abilities struct {
	// AtOnce reports whether transactions and single steps wait for no other machine, so that event loops may
	// make them, and keys can be held meanwhile. Elsewhere a transaction is repeated until nobody else has
	// changed its keys.
	AtOnce bool
	// Texts reports whether there are values of Redis beside limiters.
	Texts bool
	// Databases reports whether there are several.
	Databases bool
}

// AbilitiesOf returns a store's abilities.
func AbilitiesOf(s Store) Abilities {
	if r, ok := s.(Remote); ok {
		return r.Abilities()
	}
	return Abilities{AtOnce: true, Texts: true, Databases: true}
}

package storetest

import "cellserver/internal/store"

// bare promotes the methods of store.Store, and no others.
type bare struct{ store.Store }

// Bare returns a store that can do nothing beyond store.Store, whatever inner is able to do.
func Bare(inner store.Store) store.Store { return bare{inner} }

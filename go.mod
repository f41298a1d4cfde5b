module cellserver

go 1.25.0

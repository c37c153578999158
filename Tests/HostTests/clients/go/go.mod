module program

go 1.19

require imageworker v0.0.0

replace imageworker => ../../../../examples/go

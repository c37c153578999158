module imageworker

go 1.19

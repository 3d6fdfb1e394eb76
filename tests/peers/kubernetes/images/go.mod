module images

go 1.26.0

module tidegate/tests/shippers/go

go 1.24.0

require github.com/elastic/go-elasticsearch/v8 v8.3.0

require github.com/elastic/elastic-transport-go/v8 v8.0.0-20211216131617-bbee439d559c // indirect

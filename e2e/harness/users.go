package harness

// OperatorsUsers is an aclfile as an operator would write it. The exporter's password is "exp".
const OperatorsUsers = `user default off
user app on >s3cret ~limits:* +cl.throttle +select +ping +multi +exec +eval

user exporter on #dd7a946de80abf41797036335be60bf207f3262c6429f4993005d91f174ecf07 +ping +info +config|get +acl|whoami
user admin on >root ~* &* +@all
`

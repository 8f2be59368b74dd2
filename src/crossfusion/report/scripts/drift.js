// Distance of each period to the reference.
function drift() {}

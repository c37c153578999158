/// A date and time of the proleptic Gregorian calendar in UTC. Plain arithmetic: no locale, no time zone, no C library.
package struct CivilTime: Hashable {
  package var year: Int
  /// 1 to 12.
  package var month: Int
  /// 1 to 31.
  package var day: Int
  package var hour: Int
  package var minute: Int
  /// 0 to 60. A leap second counts as the first second of the next minute.
  package var second: Int

  package init(year: Int, month: Int, day: Int, hour: Int = 0, minute: Int = 0, second: Int = 0) {
    (self.year, self.month, self.day) = (year, month, day)
    (self.hour, self.minute, self.second) = (hour, minute, second)
  }

  private static let secondsPerDay = 86_400

  /// The range of four-digit years: from 1 January of the year 0 to the last second of the year 9999.
  private static let representable = -62_167_219_200...253_402_300_799
}

extension CivilTime {
  /// Seconds outside the years 0 to 9999 are moved to the nearest second inside.
  package init(unixSeconds: Int) {
    let seconds = min(max(unixSeconds, Self.representable.lowerBound), Self.representable.upperBound)
    let days = seconds.floorDivided(by: Self.secondsPerDay)
    let ofDay = seconds - days * Self.secondsPerDay
    (hour, minute, second) = (ofDay / 3600, ofDay / 60 % 60, ofDay % 60)
    // Eras of 400 years begin on 1 March, so that the leap day is the last day of its year.
    let shifted = days + 719_468
    let era = shifted.floorDivided(by: 146_097)
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  }

  package var daysSinceEpoch: Int {
    let shiftedYear = month <= 2 ? year - 1 : year
    let era = shiftedYear.floorDivided(by: 400)
    let yearOfEra = shiftedYear - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  package var unixSeconds: Int { daysSinceEpoch * Self.secondsPerDay + hour * 3600 + minute * 60 + second }

  /// 0 is Sunday.
  package var weekday: Int {
    let shifted = daysSinceEpoch + 4
    return shifted - shifted.floorDivided(by: 7) * 7
  }

  /// Whether the date and the time of day exist.
  package var exists: Bool {
    (1...12).contains(month) && day >= 1 && day <= daysInMonth && (0...23).contains(hour) && (0...59).contains(minute)
      && (0...60).contains(second)
  }

  private var daysInMonth: Int {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }
}

extension Int {
  /// The quotient rounded towards minus infinity; `divisor` must be positive.
  fileprivate func floorDivided(by divisor: Int) -> Int { self >= 0 ? self / divisor : (self + 1) / divisor - 1 }
}
